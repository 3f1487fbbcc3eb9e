#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace sgtc::runtime {

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  path_ = std::move(other.path_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (data_) munmap(const_cast<unsigned char*>(data_), static_cast<size_t>(size_));
  data_ = nullptr;
  size_ = 0;
}

MaybeFailure MappedFile::open(const std::string& path) {
  unmap();
  path_ = path;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failure{path, "cannot be opened: " + system_error(), {}};
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return Failure{path, "is not a regular file", {}};
  }
  size_ = status.st_size;
  if (size_ > 0) {
    void* data = mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) {
      size_ = 0;
      const Failure failure{path, "cannot be mapped: " + system_error(), {}};
      close(file);
      return failure;
    }
    data_ = static_cast<const unsigned char*>(data);
  }
  close(file);
  return {};
}

MaybeFailure read_text(const std::string& path, std::string& text) {
  MappedFile file;
  if (MaybeFailure failure = file.open(path)) return failure;
  text.clear();
  if (file.size() > 0) {
    text.assign(reinterpret_cast<const char*>(file.data()), static_cast<size_t>(file.size()));
  }
  return {};
}

}  // namespace sgtc::runtime
