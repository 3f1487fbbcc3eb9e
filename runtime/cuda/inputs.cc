#include "cuda/inputs.h"

#include <unistd.h>

#include "cuda/ranges.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Inputs::Inputs(const Driver& driver, DeviceArena& arena, std::vector<MemoryRange> ranges)
    : driver_(driver) {
  for (const MemoryRange& range : ranges) bytes_ += aligned(range.bytes);
  DeviceAddress staged = allocate(driver, bytes_, "the staging of inputs");
  for (const MemoryRange& range : ranges) {
    items_.push_back({range, staged, arena.address(range.data)});
    staged += static_cast<DeviceAddress>(aligned(range.bytes));
  }
  arena.pin(pages_of(ranges, sysconf(_SC_PAGESIZE)));
  SGTC_CUDA(driver, cuStreamCreate(&copies_, kStreamNonBlocking));
  SGTC_CUDA(driver, cuEventCreate(&staged_, kEventBlockingSync | kEventNoTiming));
  SGTC_CUDA(driver, cuEventCreate(&taken_, kEventNoTiming));
}

void Inputs::await() const { SGTC_CUDA(driver_, cuEventSynchronize(staged_)); }

void Inputs::send(Stream stream) const {
  SGTC_CUDA(driver_, cuStreamWaitEvent(copies_, taken_, 0));
  for (const Item& item : items_) {
    SGTC_CUDA(driver_, cuMemcpyHtoDAsync_v2(item.staged, item.host.data,
                                            static_cast<size_t>(item.host.bytes), copies_));
  }
  SGTC_CUDA(driver_, cuEventRecord(staged_, copies_));
  SGTC_CUDA(driver_, cuStreamWaitEvent(stream, staged_, 0));
  for (const Item& item : items_) {
    SGTC_CUDA(driver_, cuMemcpyDtoDAsync_v2(item.target, item.staged,
                                            static_cast<size_t>(item.host.bytes), stream));
  }
  SGTC_CUDA(driver_, cuEventRecord(taken_, stream));
}

}  // namespace sgtc::runtime::cuda
