// The position of a producer or a consumer in a ring of stages in shared memory.
#pragma once

#include "hopper/instructions.h"

namespace sgtc::hopper {

/// The parity of the stage's barriers changes with each round.
template <uint32_t Stages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  /// After `count` stages from the start.
  SGTC_DEVICE RingPosition at(uint32_t count) { return {count % Stages, count / Stages & 1}; }
  SGTC_METHOD void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace sgtc::hopper
