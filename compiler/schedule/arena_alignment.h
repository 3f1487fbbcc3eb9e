// How buffers lie in the arena of a rank.
#pragma once

#include <cstdint>

#include "plan/format.h"

namespace sgtc {

/// What offsets and strides of buffers are multiples of, in bytes: a cache line of a CPU, which is
/// a vector of 16 floats; what allocations of a GPU's memory are multiples of.
inline int64_t arena_alignment(const plan::Plan& plan) { return plan.target == "cpu" ? 64 : 256; }

/// The least multiple of `alignment` that is not less than `bytes`.
inline int64_t align(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace sgtc
