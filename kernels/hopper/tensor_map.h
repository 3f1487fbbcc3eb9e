// The description of a tensor in global memory that the copy engine reads.
#pragma once

#include <stdint.h>

namespace sgtc::hopper {

/// Made by the driver (cuTensorMapEncodeTiled) and placed in global memory at a multiple of 64
/// bytes.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

}  // namespace sgtc::hopper
