#include "cuda/device_arena.h"

#include <algorithm>
#include <utility>

#include "cuda/ranges.h"
#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

std::string gibibytes(size_t bytes) {
  return format("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

constexpr const char* kProgram = "the program";

[[noreturn]] void die_of_memory(const Driver& driver, size_t bytes, const char* purpose) {
  size_t free = 0;
  size_t total = 0;
  SGTC_CUDA(driver, cuMemGetInfo_v2(&free, &total));
  die(driver.subject(),
      std::string(purpose) + " needs " + gibibytes(bytes) + " of its memory, free are " +
          gibibytes(free) + " of " + gibibytes(total),
      "compile with a smaller batch or more micro-batches, or end what else uses the GPU");
}

}  // namespace

DeviceAddress allocate(const Driver& driver, int64_t bytes, const char* purpose) {
  DeviceAddress address = 0;
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  const int result = driver.functions.cuMemAlloc_v2(&address, size);
  if (result == kOutOfMemory) die_of_memory(driver, size, purpose);
  driver.check(result, "cuMemAlloc");
  return address;
}

DeviceAddress allocate_shared(const Driver& driver, const Nccl& nccl, int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  size_t free = 0;
  size_t total = 0;
  SGTC_CUDA(driver, cuMemGetInfo_v2(&free, &total));
  if (size > free) die_of_memory(driver, size, kProgram);
  void* memory = nullptr;
  SGTC_NCCL(nccl, ncclMemAlloc(&memory, size));
  return reinterpret_cast<DeviceAddress>(memory);
}

DeviceArena::DeviceArena(const Driver& driver, const Nccl* nccl, const Arena& host, Stream stream)
    : driver_(driver),
      host_(host),
      stream_(stream),
      base_(nccl ? allocate_shared(driver, *nccl, host.bytes())
                 : allocate(driver, host.bytes(), kProgram)) {}

void DeviceArena::pin(std::vector<MemoryRange> pages) {
  for (const MemoryRange& page : pages) {
    SGTC_CUDA(driver_, cuMemHostRegister_v2(page.data, static_cast<size_t>(page.bytes), 0));
  }
  pinned_ = std::move(pages);
}

void DeviceArena::poison() const {
  SGTC_CUDA(driver_, cuMemsetD8Async(base_, 0xFF, static_cast<size_t>(bytes()), stream_));
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

Touched DeviceArena::touched() const {
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<unsigned char> piece(kPiece);
  Touched touched;
  for (int64_t begin = 0; begin < bytes(); begin += kPiece) {
    const int64_t count = std::min(kPiece, bytes() - begin);
    SGTC_CUDA(driver_, cuMemcpyDtoHAsync_v2(piece.data(), base_ + static_cast<DeviceAddress>(begin),
                                            static_cast<size_t>(count), stream_));
    SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
    touched.add(piece.data(), begin, count);
  }
  return touched;
}

void DeviceArena::read(unsigned char* to) const {
  SGTC_CUDA(driver_, cuMemcpyDtoHAsync_v2(to, base_, static_cast<size_t>(bytes()), stream_));
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

void DeviceArena::write(const unsigned char* from) const {
  SGTC_CUDA(driver_, cuMemcpyHtoDAsync_v2(base_, from, static_cast<size_t>(bytes()), stream_));
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

void DeviceArena::upload(MemoryRange range) const {
  if (range.bytes == 0) return;
  for (const MemoryRange& piece : cut_at_borders(range, pinned_)) {
    SGTC_CUDA(driver_, cuMemcpyHtoDAsync_v2(address(piece.data), piece.data,
                                            static_cast<size_t>(piece.bytes), stream_));
  }
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

void DeviceArena::download(MemoryRange range) const {
  if (range.bytes == 0) return;
  for (const MemoryRange& piece : cut_at_borders(range, pinned_)) {
    SGTC_CUDA(driver_, cuMemcpyDtoHAsync_v2(piece.data, address(piece.data),
                                            static_cast<size_t>(piece.bytes), stream_));
  }
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

}  // namespace sgtc::runtime::cuda
