#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(path + ": " + what + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

int open_for_reading(const std::string& path) {
  // O_NONBLOCK: a named pipe is refused below instead of waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(path, "cannot open the file");
  return fd;
}

size_t size_of_regular_file(int fd, const std::string& path) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) fail(path, "cannot read the file's size");
  if (S_ISDIR(status.st_mode)) throw Error(path + ": expected a file, found a directory");
  if (!S_ISREG(status.st_mode)) throw Error(path + ": expected a regular file, found another kind");
  return static_cast<size_t>(status.st_size);
}

void write_all(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "cannot write the file");
    contents.remove_prefix(static_cast<size_t>(written));
  }
}

// Removes a temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void rename_to(const std::string& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) fail(target, "cannot replace the file");
    path_.clear();
  }

 private:
  std::string path_;
};

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(open_for_reading(path));
  std::string contents(size_of_regular_file(file.get(), path), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = ::read(file.get(), contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot read the file");
    if (count == 0) throw Error(path + ": the file became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  return contents;
}

void write_file(const std::string& path, std::string_view contents, unsigned mode) {
  std::string name = path + ".XXXXXX";
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot create a temporary file beside it");
  Temporary temporary(name);
  write_all(file.get(), contents, path);
  if (::fchmod(file.get(), mode) != 0) fail(path, "cannot set the file's permissions");
  if (!file.close()) fail(path, "cannot write the file");
  temporary.rename_to(path);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(open_for_reading(path));
  const size_t size = size_of_regular_file(file.get(), path);
  std::span<const std::byte> bytes;
  if (size != 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) fail(path, "cannot map the file");
    bytes = {static_cast<const std::byte*>(address), size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes));
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sgtc
