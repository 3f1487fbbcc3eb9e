// How feeds and control values reach the GPU while it computes the step before.
//
// The host writes them into its arena, whose pages are pinned. A stream of its own copies them into
// a staging block on the device as soon as the step before has taken its inputs from there; the
// step begins by copying them, at the speed of the device's memory, to where the plan has them. So
// a step never waits for the host's memory, and the host waits only for a copy of two steps ago.
// The price is device memory for one more copy of the inputs.
#pragma once

#include <vector>

#include "cuda/device_arena.h"
#include "cuda/driver.h"

namespace sgtc::runtime::cuda {

class Inputs {
 public:
  /// `ranges` of the host's arena are apart from each other. The others must outlive this.
  Inputs(const Driver& driver, DeviceArena& arena, std::vector<MemoryRange> ranges);

  /// Of the staging block.
  int64_t bytes() const { return bytes_; }
  /// Returns when the host may write the next inputs.
  void await() const;
  /// Sends what the host has written, to be in place for what comes next in `stream`.
  void send(Stream stream) const;

 private:
  struct Item {
    MemoryRange host;
    DeviceAddress staged;
    DeviceAddress target;
  };

  const Driver& driver_;
  std::vector<Item> items_;
  int64_t bytes_ = 0;
  Stream copies_ = nullptr;
  Event staged_ = nullptr;  // the staging block is filled
  Event taken_ = nullptr;   // and was copied from
};

}  // namespace sgtc::runtime::cuda
