// What a rank tells about itself when it joins, and whether two ranks fit together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "failure.h"
#include "launch/job_options.h"

namespace sgtc::runtime {

struct Introduction {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t pid = 0;
  std::string host;
  std::string identity;  // host_identity()
  std::string cpus;      // that it may use, as cpu_list writes them
  std::string fingerprint;
  Agreement agreement;
};

/// "rank 3 (host node1, process 4711)"
std::string name_of(const Introduction& introduction);

std::string encode(const Introduction& introduction);
/// False if the text is none.
bool decode(std::string_view text, Introduction& introduction);

/// A failure if `other` cannot run in one job with rank 0: another number of ranks, program, or
/// value of an option. It names every option that differs.
MaybeFailure compare_with_rank_0(const Introduction& zero, const Introduction& other);

}  // namespace sgtc::runtime
