// What a rank brings along when it joins a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sgtc::runtime {

/// Names and values of options.
using Agreement = std::vector<std::pair<std::string, std::string>>;

/// What `Job::join` needs beside the environment.
struct JobOptions {
  std::string fingerprint;  // of the program; must be equal on all ranks
  /// Options that must be equal on all ranks; a difference is an error that names them.
  Agreement agreement;
  std::string secret_file;       // --secret-file
  std::string checkpoint;        // --checkpoint: may hold the secret
  int64_t timeout_seconds = 60;  // until all ranks have joined
};

}  // namespace sgtc::runtime
