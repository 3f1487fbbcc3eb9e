// The secret that the ranks of a job share, so that nobody else can join it.
//
// In this order: --secret-file, SGTC_SECRET, for a job of one host a file that rank 0 writes for
// the time until all have joined (in $XDG_RUNTIME_DIR or /tmp), for several hosts a file in the
// folder of the checkpoints, which rank 0 writes if there is none. Files must belong to the user
// and be closed to all others; otherwise they are refused.
#pragma once

#include <cstddef>
#include <string>

#include "failure.h"
#include "launch/environment.h"
#include "launch/job_options.h"

namespace sgtc::runtime {

/// Where the secret comes from.
struct SecretSource {
  std::string value;         // the secret itself; empty: it is in a file
  std::string path;          // of the file
  bool from_rank_0 = false;  // rank 0 writes the file
  bool temporary = false;    // anew for this job
};

/// Fails if a job of several hosts has none.
MaybeFailure find_secret(const LaunchEnvironment& environment, const JobOptions& options,
                         SecretSource& source);

/// Rank 0: writes the file if that is its task, then reads the secret.
MaybeFailure provide_secret(const SecretSource& source, std::string& secret);

/// Reads the secret. One that rank 0 has not written yet is empty and no failure.
MaybeFailure read_secret(const SecretSource& source, std::string& secret);

/// Rank 0: removes a temporary file.
void forget_secret(const SecretSource& source);

/// Bytes that nobody can guess.
std::string random_bytes(size_t count);

/// Two hexadecimal digits a byte.
std::string hexadecimal(const std::string& bytes);

}  // namespace sgtc::runtime
