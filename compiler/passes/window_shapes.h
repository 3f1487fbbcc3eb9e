// Windows of convolutions and pools as the written kernels get them.
#pragma once

#include <cstdint>
#include <vector>

#include "include/shapes.h"
#include "ir/ops.h"

namespace sgtc {

/// The windows of `kernel` taps over the spatial dimensions of `input` and `output`, of which there
/// are at most kernels::kSpatial. `attributes` hold strides, pads and dilations.
kernels::WindowShape window_shape(const Attributes& attributes, const Shape& input,
                                  const Shape& output, const std::vector<int64_t>& kernel);

/// A convolution or one of its gradients, but for its cut.
kernels::ConvShape uncut_convolution(Op op, const Attributes& attributes,
                                     const std::vector<TensorType>& operands, const Shape& result);

}  // namespace sgtc
