// The constants of the written kernels, from operators and their types.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/kernel.h"

namespace sgtc {

/// The structure of kernels/include/shapes.h for spec.anchor, as words of 64 bits. Throws Error for
/// sizes beyond what the structures hold (more than 8 dimensions that cannot be merged, more than 3
/// spatial dimensions).
std::vector<int64_t> anchor_shape_words(const KernelSpec& spec, bool wide_vectors);

}  // namespace sgtc
