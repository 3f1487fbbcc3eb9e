#include "shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "failure.h"
#include "segment_communicator.h"

namespace sgtc::runtime {
namespace {

std::string object_of(const std::string& name) { return "shared memory " + name; }

std::string mebibytes(int64_t bytes) {
  return format("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

// Takes the pages now: without them a later access would end the process with SIGBUS.
void reserve(int file, const std::string& name, int64_t bytes) {
  int error = ftruncate(file, bytes) == 0 ? 0 : errno;
  if (error == 0) error = posix_fallocate(file, 0, bytes);
  if (error == 0) return;
  shm_unlink(name.c_str());
  errno = error;
  die(object_of(name), "cannot get " + mebibytes(bytes) + ": " + system_error(),
      "give /dev/shm more room (docker: --shm-size)");
}

}  // namespace

SharedMemory::SharedMemory(const SegmentLayout& layout, const std::string& name, bool creates,
                           const std::function<void()>& barrier)
    : layout_(layout) {
  if (creates) create(name);
  barrier();
  if (!creates) open(name);
  barrier();
  if (creates) shm_unlink(name.c_str());
}

SharedMemory::~SharedMemory() { munmap(base_, static_cast<size_t>(layout_.bytes)); }

void SharedMemory::create(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) {
    die(object_of(name), "cannot be created: " + system_error(), "check that /dev/shm is writable");
  }
  reserve(file, name, layout_.bytes);
  base_ = map(file);
  construct_segment(layout_, base_);
}

void SharedMemory::open(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR, 0);
  if (file < 0) {
    die(object_of(name), "cannot be opened: " + system_error(),
        "let the ranks of a host share /dev/shm (docker: --ipc)");
  }
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_uid != geteuid() || status.st_size != layout_.bytes) {
    die(object_of(name), "is not the one that this job made");
  }
  base_ = map(file);
}

unsigned char* SharedMemory::map(int file) const {
  void* memory = mmap(nullptr, static_cast<size_t>(layout_.bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) die("shared memory", "cannot be mapped: " + system_error());
  close(file);
  return static_cast<unsigned char*>(memory);
}

Bell& SharedMemory::bell(int64_t rank) const { return reinterpret_cast<Bell*>(base_)[rank]; }

void SharedMemory::add_communicators(int64_t rank, RankCommunicators& communicators) const {
  add_segment_communicators(layout_, base_, rank, communicators);
}

}  // namespace sgtc::runtime
