// A file that all ranks of a job write together, each its own parts, and that appears under its
// name when all of it is on the disk.
#pragma once

#include <cstdint>
#include <string>

#include "durable_file.h"
#include "launch/job.h"

namespace sgtc::runtime {

/// `begin` and `commit` are collectives of the job. Every failure ends the process.
class JointFile {
 public:
  /// `job` must outlive this.
  JointFile(Job& job, std::string path);

  /// Rank 0 creates the file PATH.tmp: `header`, which is the same on all ranks, and `bytes`.
  void begin(const std::string& header, int64_t bytes);
  /// Any rank; `offset` counts behind the header.
  void write(const void* data, int64_t size, int64_t offset);
  /// When all ranks have synced what they wrote, rank 0 gives the file its name.
  void commit();

 private:
  std::string temporary() const { return path_ + ".tmp"; }

  Job& job_;
  const std::string path_;
  int64_t header_bytes_ = 0;
  SharedFile file_;
};

}  // namespace sgtc::runtime
