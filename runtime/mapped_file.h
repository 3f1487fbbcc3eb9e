// A file mapped into memory, read only.
#pragma once

#include <cstdint>
#include <string>

#include "failure.h"

namespace sgtc::runtime {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept { *this = static_cast<MappedFile&&>(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Maps the whole of a regular file; an empty one has no data.
  MaybeFailure open(const std::string& path);

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  void unmap();

  std::string path_;
  const unsigned char* data_ = nullptr;
  int64_t size_ = 0;
};

/// The whole of a (small) file as text.
MaybeFailure read_text(const std::string& path, std::string& text);

}  // namespace sgtc::runtime
