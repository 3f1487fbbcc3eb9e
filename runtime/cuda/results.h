// What a step computed, read on the host while the next step already runs.
//
// Each started step copies the observed values into one of the slots, in turn, so that a step never
// overwrites what the host has not read.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "device.h"

namespace sgtc::runtime::cuda {

class Results {
 public:
  /// Both must outlive this.
  Results(const Driver& driver, const DeviceArena& arena);

  /// Device::observe.
  const unsigned char* observe(MemoryRange range);
  /// Copies the values as they are at this point of the stream.
  void collect(Stream stream);
  /// Waits for the oldest copy that was not read yet and shows its values where `observe` said.
  void read();

 private:
  static constexpr int64_t kSlots = kMaxStepsAhead + 1;
  static constexpr int64_t kSlotBytes = kMaxObserved * kMaxObservedBytes;

  struct Item {
    DeviceAddress source;
    int64_t bytes;
    int64_t offset;  // in a slot
  };
  unsigned char* slot(int64_t number) const { return slots_ + number % kSlots * kSlotBytes; }
  Event event(int64_t number) const { return collected_[static_cast<size_t>(number % kSlots)]; }

  const Driver& driver_;
  const DeviceArena& arena_;
  std::vector<Item> items_;
  unsigned char* slots_ = nullptr;  // pinned
  std::array<Event, kSlots> collected_ = {};
  std::array<unsigned char, kSlotBytes> shown_ = {};
  int64_t collects_ = 0;
  int64_t reads_ = 0;
};

}  // namespace sgtc::runtime::cuda
