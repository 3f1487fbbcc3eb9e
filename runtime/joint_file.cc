#include "joint_file.h"

#include <utility>

namespace sgtc::runtime {

JointFile::JointFile(Job& job, std::string path) : job_(job), path_(std::move(path)) {}

void JointFile::begin(const std::string& header, int64_t bytes) {
  header_bytes_ = static_cast<int64_t>(header.size());
  if (job_.rank() == 0) {
    require(file_.create(temporary(), header_bytes_ + bytes));
    require(file_.write(header.data(), header_bytes_, 0));
  }
  job_.barrier();
}

void JointFile::write(const void* data, int64_t size, int64_t offset) {
  if (!file_.is_open()) require(file_.open(temporary()));
  require(file_.write(data, size, header_bytes_ + offset));
}

void JointFile::commit() {
  if (file_.is_open()) require(file_.finish());
  job_.barrier();
  if (job_.rank() == 0) require(rename_durably(temporary(), path_));
}

}  // namespace sgtc::runtime
