// Indices that are checked while a step runs.
#pragma once

#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// Element `i` of a tensor of 4- or 8-byte integers.
SGTC_INLINE int64_t read_index(const void* indices, int64_t i, int64_t bytes) {
  return bytes == 4 ? static_cast<const int32_t*>(indices)[i]
                    : static_cast<const int64_t*>(indices)[i];
}

/// `index` within [0, extent): negative ones count from the end. One that is out of range is
/// written to the status block {node, index, extent} unless that holds an earlier one, and gives
/// -1. Plain stores: whichever thread wins, a bad index is reported and the run ends.
SGTC_INLINE int64_t checked_index(int64_t index, int64_t extent, void* status, int64_t node) {
  const int64_t from_start = index < 0 ? index + extent : index;
  if (static_cast<uint64_t>(from_start) < static_cast<uint64_t>(extent)) return from_start;
  auto* words = static_cast<int64_t*>(status);
  if (words != nullptr && words[0] == 0) {
    words[1] = index;
    words[2] = extent;
    words[0] = node;
  }
  return -1;
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
