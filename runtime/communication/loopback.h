// Ranks as threads of one process, for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rank_communicators.h"
#include "segment.h"

namespace sgtc::runtime {

class Loopback {
 public:
  Loopback(const std::vector<RankGroup>& groups, int64_t ranks);
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback();

  /// The communicators of a rank, to be used by one thread. This and `watch` must outlive them.
  std::unique_ptr<RankCommunicators> communicators(int64_t rank, Watch& watch);

 private:
  SegmentLayout layout_;
  unsigned char* base_ = nullptr;
};

}  // namespace sgtc::runtime
