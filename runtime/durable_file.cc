#include "durable_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace sgtc::runtime {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

// True when the operation that comes next is the one at which a test wants the process to die.
bool crashes_here() {
  static int64_t operations = 0;
  const char* text = std::getenv("SGTC_CRASH_AT");
  return text && ++operations == std::strtoll(text, nullptr, 10);
}

void crash_point() {
  if (crashes_here()) raise(SIGKILL);
}

Failure cannot(const std::string& path, const char* action) {
  return {path, std::string("cannot ") + action + ": " + system_error(), {}};
}

MaybeFailure write_all(int file, const unsigned char* data, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = ::write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot(path, "write");
    data += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

}  // namespace

DurableFile::~DurableFile() {
  if (file_ >= 0) close(file_);
}

MaybeFailure DurableFile::create(const std::string& path) {
  path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) return cannot(path, "create");
  pending_.reserve(kChunk);
  return {};
}

MaybeFailure DurableFile::flush() {
  if (pending_.empty()) return {};
  if (crashes_here()) {
    write_all(file_, pending_.data(), pending_.size() / 2, path_);
    raise(SIGKILL);
  }
  MaybeFailure failure = write_all(file_, pending_.data(), pending_.size(), path_);
  pending_.clear();
  return failure;
}

MaybeFailure DurableFile::write(const void* data, int64_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  hash_.update(data, static_cast<size_t>(size));
  size_ += size;
  for (size_t left = static_cast<size_t>(size); left > 0;) {
    const size_t part = std::min(left, kChunk - pending_.size());
    pending_.insert(pending_.end(), bytes, bytes + part);
    bytes += part;
    left -= part;
    if (pending_.size() < kChunk) continue;
    if (MaybeFailure failure = flush()) return failure;
  }
  return {};
}

MaybeFailure DurableFile::finish() {
  if (MaybeFailure failure = flush()) return failure;
  crash_point();
  if (fsync(file_) != 0) return cannot(path_, "sync");
  if (close(std::exchange(file_, -1)) != 0) return cannot(path_, "close");
  digest_ = hash_.finish();
  return {};
}

SharedFile::~SharedFile() {
  if (file_ >= 0) close(file_);
}

MaybeFailure SharedFile::create(const std::string& path, int64_t size) {
  path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) return cannot(path, "create");
  if (ftruncate(file_, size) != 0) return cannot(path, "extend");
  return {};
}

MaybeFailure SharedFile::open(const std::string& path) {
  path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file_ >= 0) return {};
  Failure failure = cannot(path, "open");
  failure.remedy = "all ranks need the same file system here";
  return failure;
}

MaybeFailure SharedFile::write(const void* data, int64_t size, int64_t offset) {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  const bool crashes = crashes_here();
  const int64_t end = crashes ? size / 2 : size;
  for (int64_t done = 0; done < end;) {
    const ssize_t written =
        pwrite(file_, bytes + done, static_cast<size_t>(end - done), offset + done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot(path_, "write");
    done += written;
  }
  if (crashes) raise(SIGKILL);
  return {};
}

MaybeFailure SharedFile::finish() {
  crash_point();
  if (fsync(file_) != 0) return cannot(path_, "sync");
  if (close(std::exchange(file_, -1)) != 0) return cannot(path_, "close");
  return {};
}

MaybeFailure sync_folder(const std::string& path) {
  crash_point();
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return cannot(path, "open");
  const bool synced = fsync(folder) == 0 || errno == EINVAL || errno == EROFS;
  MaybeFailure failure;
  if (!synced) failure = cannot(path, "sync");
  close(folder);
  return failure;
}

MaybeFailure rename_durably(const std::string& from, const std::string& to) {
  crash_point();
  if (rename(from.c_str(), to.c_str()) != 0) return cannot(to, "rename to");
  return sync_folder(parent_folder(to));
}

MaybeFailure make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) return cannot(part, "create the folder");
    if (end == path.npos) break;
  }
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return Failure{path, "is not a folder", {}};
  }
  return {};
}

void remove_tree(const std::string& path) {
  for (const std::string& name : list_folder(path)) unlink((path + "/" + name).c_str());
  if (rmdir(path.c_str()) != 0) unlink(path.c_str());
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  DIR* folder = opendir(path.c_str());
  if (!folder) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::string parent_folder(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

MaybeFailure probe_writable(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Failure{path, "is a folder, expected the name of a file", {}};
  }
  const std::string probe = path + ".probe";
  const int file = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return cannot(path, "create");
  close(file);
  unlink(probe.c_str());
  return {};
}

}  // namespace sgtc::runtime
