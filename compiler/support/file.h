// Files of the compiler: whole reads, atomic writes and read-only maps. All errors are `Error`s
// that name the file and the system's reason.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sgtc {

/// The contents of a regular file.
std::string read_file(const std::string& path);

/// Writes through a temporary file beside `path` that is renamed at the end: readers see the old
/// or the new contents, and a failed write leaves nothing. `mode` are the permission bits.
void write_file(const std::string& path, std::string_view contents, unsigned mode = 0644);

/// A regular file mapped read-only for as long as the object lives.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace sgtc
