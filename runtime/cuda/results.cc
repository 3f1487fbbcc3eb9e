#include "cuda/results.h"

#include <cstring>

namespace sgtc::runtime::cuda {

Results::Results(const Driver& driver, const DeviceArena& arena) : driver_(driver), arena_(arena) {
  void* memory = nullptr;
  SGTC_CUDA(driver, cuMemHostAlloc(&memory, kSlots * kSlotBytes, 0));
  slots_ = static_cast<unsigned char*>(memory);
  for (Event& event : collected_) {
    SGTC_CUDA(driver, cuEventCreate(&event, kEventBlockingSync | kEventNoTiming));
  }
}

const unsigned char* Results::observe(MemoryRange range) {
  const int64_t offset = static_cast<int64_t>(items_.size()) * kMaxObservedBytes;
  items_.push_back({arena_.address(range.data), range.bytes, offset});
  return shown_.data() + offset;
}

void Results::collect(Stream stream) {
  for (const Item& item : items_) {
    SGTC_CUDA(driver_, cuMemcpyDtoHAsync_v2(slot(collects_) + item.offset, item.source,
                                            static_cast<size_t>(item.bytes), stream));
  }
  SGTC_CUDA(driver_, cuEventRecord(event(collects_), stream));
  ++collects_;
}

void Results::read() {
  SGTC_CUDA(driver_, cuEventSynchronize(event(reads_)));
  std::memcpy(shown_.data(), slot(reads_), kSlotBytes);
  ++reads_;
}

}  // namespace sgtc::runtime::cuda
