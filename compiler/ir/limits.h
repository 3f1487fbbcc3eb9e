// How large tensors may be.
//
// Sizes, offsets and counts are 64-bit integers everywhere. These limits keep sums and products of
// them from overflowing: a tensor has at most 2^40 bytes and an imported graph fewer than 2^22
// nodes, so all together have less than 2^63 bytes. They are far beyond what a device holds; what
// is larger comes from a mistake in a shape.
#pragma once

#include <cstdint>

#include "ir/ops.h"

namespace sgtc {

inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;
inline constexpr int64_t kMaxRank = 64;

/// Throws Error when a size is negative, or there are too many dimensions or bytes. A size of 0
/// counts as 1, so that strides do not overflow either.
void check_size(const TensorType& type);

}  // namespace sgtc
