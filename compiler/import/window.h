// Sliding windows of convolutions and pools.
#pragma once

#include <cstdint>
#include <vector>

#include "import/lowering.h"

namespace sgtc {

/// Geometry of the spatial dimensions, one entry each; pads are all begins, then all ends.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  /// Cells that a dilated kernel spans in dimension i.
  int64_t span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  int64_t padding(size_t i) const { return pads[i] + pads[i + kernel.size()]; }
};

/// kernel_shape (or `kernel` when the node has none), strides, dilations, pads and auto_pad of a
/// node over `input` spatial sizes. `transposed`: auto_pad is left to the caller, pads are zero.
/// Throws Error for wrong lengths or values.
Window window_of(Lowering& node, const std::vector<int64_t>& kernel, const Shape& input,
                 bool transposed = false);

/// The attributes of the Graph's convolutions.
Attributes convolution_attributes(const Window& window, int64_t groups);

/// Splits a total padding as auto_pad says: SAME_UPPER puts the odd cell at the end.
void split_padding(Window& window, size_t dimension, int64_t total, bool upper);

/// The spatial sizes of `shape` ([N, C, …]). Throws Error below rank 3.
Shape spatial_sizes(const Shape& shape);

}  // namespace sgtc
