// What hosts that launch kernels for Hopper need to know, whatever the kernel.
#pragma once

#include <stdint.h>

namespace sgtc::hopper {

/// The description of a tensor in global memory that the copy engine reads. Made by the driver
/// (cuTensorMapEncodeTiled) and placed in global memory at a multiple of 64 bytes.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

/// Shared memory in which one warp reorders 8 rows of 64 sums (staging.h); the padding of rows
/// spreads banks.
inline constexpr uint32_t kStagingRowBytes = 64 * 4 + 32;
inline constexpr uint32_t kStagingBytes = 8 * kStagingRowBytes;

}  // namespace sgtc::hopper
