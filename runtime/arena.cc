#include "arena.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr unsigned char kPoison = 0xFF;

// The number that the first line of `path` starting with `key` holds; -1 if there is none.
int64_t read_number(const char* path, const char* key) {
  FILE* file = std::fopen(path, "re");
  if (!file) return -1;
  char line[256];
  long long number = -1;
  while (number < 0 && std::fgets(line, sizeof line, file)) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) {
      if (std::sscanf(line + std::strlen(key), "%lld", &number) != 1) break;
    }
  }
  std::fclose(file);
  return number;
}

std::string gibibytes(int64_t bytes) {
  return format("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

void Touched::add(const unsigned char* data, int64_t offset, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kLine) {
    const int64_t size = std::min(kLine, count - begin);
    int64_t used = size;
    while (used > 0 && data[begin + used - 1] == kPoison) --used;
    if (used == 0) continue;
    end = offset + begin + used;
    bytes += size;
  }
}

Arena::Arena(int64_t bytes, int64_t used) : bytes_(bytes), mapped_bytes_(bytes + kHugePage) {
  if (used > available_memory()) {
    die("memory",
        "the program needs " + gibibytes(used) + ", available are " + gibibytes(available_memory()),
        "compile it with a smaller batch or more micro-batches");
  }
  void* memory = mmap(nullptr, static_cast<size_t>(mapped_bytes_), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    die("memory", "cannot reserve " + gibibytes(bytes) + ": " + system_error());
  mapping_ = static_cast<unsigned char*>(memory);
  const uintptr_t start = reinterpret_cast<uintptr_t>(mapping_);
  const uintptr_t page = static_cast<uintptr_t>(kHugePage);
  data_ = mapping_ + ((start + page - 1) / page * page - start);
  madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
}

Arena::~Arena() { munmap(mapping_, static_cast<size_t>(mapped_bytes_)); }

void Arena::poison() { std::memset(data_, kPoison, static_cast<size_t>(bytes_)); }

Touched Arena::touched() const {
  Touched touched;
  touched.add(data_, 0, bytes_);
  return touched;
}

int64_t available_memory() {
  const int64_t kibibytes = read_number("/proc/meminfo", "MemAvailable:");
  int64_t available = kibibytes < 0 ? INT64_MAX : kibibytes * 1024;
  const int64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
  const int64_t used = read_number("/sys/fs/cgroup/memory.current", "");
  if (limit >= 0 && used >= 0) available = std::min(available, std::max<int64_t>(limit - used, 0));
  return available;
}

int64_t total_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

}  // namespace sgtc::runtime
