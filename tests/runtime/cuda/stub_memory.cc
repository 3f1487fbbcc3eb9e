// Memory of the GPU, and how processes share it: as files without a name.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "cuda/nccl_functions.h"
#include "runtime/cuda/stub_streams.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr int kInvalidValue = 1;

struct SharedBlock {
  int file = -1;
  size_t bytes = 0;
};

std::map<DeviceAddress, SharedBlock> shared;  // by address

size_t used = 0;

size_t memory_total() { return number_from("SGTC_STUB_MEMORY", uint64_t{1} << 30); }

bool take(size_t bytes) {
  if (used + bytes > memory_total()) return false;
  used += bytes;
  return true;
}

void* map_file(void* place, int file, size_t bytes) {
  const int where = place ? MAP_FIXED : 0;
  return mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | where, file, 0);
}

// Handles are open files, from 1.
int file_of(MemoryHandle handle) { return static_cast<int>(handle) - 1; }
MemoryHandle handle_of(int file) { return static_cast<MemoryHandle>(file + 1); }

}  // namespace

extern "C" {

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = memory_total();
  *free = memory_total() - used;
  return kSuccess;
}

int cuMemAlloc_v2(DeviceAddress* address, size_t bytes) {
  STUB_ENTER("cuMemAlloc_v2", " " + std::to_string(bytes));
  if (!take(bytes)) return kOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xA5, bytes);
  *address = reinterpret_cast<DeviceAddress>(memory);
  return kSuccess;
}

int ncclMemAlloc(void** memory, size_t bytes) {
  STUB_ENTER("ncclMemAlloc", " " + std::to_string(bytes));
  if (!take(bytes)) return 1;
  const int file = memfd_create("stub", MFD_CLOEXEC);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return 1;
  *memory = map_file(nullptr, file, bytes);
  std::memset(*memory, 0xA5, bytes);
  shared[reinterpret_cast<DeviceAddress>(*memory)] = {file, bytes};
  return kNcclSuccess;
}

int cuMemGetAddressRange_v2(DeviceAddress* base, size_t* bytes, DeviceAddress address) {
  const auto block = shared.find(address);
  if (block == shared.end()) return kInvalidValue;
  *base = address;
  *bytes = block->second.bytes;
  return kSuccess;
}

int cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
  STUB_ENTER("cuMemRetainAllocationHandle", "");
  const auto block = shared.find(reinterpret_cast<DeviceAddress>(address));
  if (block == shared.end()) return kInvalidValue;
  *handle = handle_of(fcntl(block->second.file, F_DUPFD_CLOEXEC, 0));
  return kSuccess;
}

int cuMemExportToShareableHandle(void* file, MemoryHandle handle, int kind, unsigned long long) {
  STUB_ENTER("cuMemExportToShareableHandle", "");
  if (kind != kFileDescriptor) return kInvalidValue;
  *static_cast<int*>(file) = fcntl(file_of(handle), F_DUPFD_CLOEXEC, 0);
  return kSuccess;
}

int cuMemImportFromShareableHandle(MemoryHandle* handle, void* file, int kind) {
  STUB_ENTER("cuMemImportFromShareableHandle", "");
  if (kind != kFileDescriptor) return kInvalidValue;
  const int number = static_cast<int>(reinterpret_cast<intptr_t>(file));
  *handle = handle_of(fcntl(number, F_DUPFD_CLOEXEC, 0));
  return kSuccess;
}

int cuMemRelease(MemoryHandle handle) { return close(file_of(handle)) == 0 ? kSuccess : 1; }

int cuMemAddressReserve(DeviceAddress* address, size_t bytes, size_t, DeviceAddress,
                        unsigned long long) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<DeviceAddress>(place);
  return kSuccess;
}

int cuMemMap(DeviceAddress address, size_t bytes, size_t, MemoryHandle handle, unsigned long long) {
  STUB_ENTER("cuMemMap", " " + std::to_string(bytes));
  void* place = reinterpret_cast<void*>(address);
  return map_file(place, file_of(handle), bytes) == place ? kSuccess : kInvalidValue;
}

int cuMemSetAccess(DeviceAddress, size_t, const MemoryAccess* access, size_t count) {
  STUB_ENTER("cuMemSetAccess", " " + std::to_string(access->location.id));
  const bool known = count == 1 && access->location.type == kDeviceLocation;
  return known && access->rights == kReadAndWrite ? kSuccess : kInvalidValue;
}

}  // extern "C"

}  // namespace sgtc::runtime::cuda
