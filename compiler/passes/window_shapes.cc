#include "passes/window_shapes.h"

namespace sgtc {
namespace {

// Copies sizes to the last of three dimensions; the first ones become `filler`.
void set_spatial(int64_t (&to)[kernels::kSpatial], const std::vector<int64_t>& from,
                 int64_t filler) {
  const auto missing = static_cast<size_t>(kernels::kSpatial) - from.size();
  for (size_t d = 0; d < static_cast<size_t>(kernels::kSpatial); ++d) {
    to[d] = d < missing ? filler : from[d - missing];
  }
}

// The dimensions behind the first two.
std::vector<int64_t> spatial_of(const Shape& shape) {
  return std::vector<int64_t>(shape.begin() + 2, shape.end());
}

}  // namespace

kernels::WindowShape window_shape(const Attributes& attributes, const Shape& input,
                                  const Shape& output, const std::vector<int64_t>& kernel) {
  const std::vector<int64_t>& pads = attributes.integers("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  kernels::WindowShape window;
  set_spatial(window.input, spatial_of(input), 1);
  set_spatial(window.output, spatial_of(output), 1);
  set_spatial(window.kernel, kernel, 1);
  set_spatial(window.strides, attributes.integers("strides"), 1);
  set_spatial(window.pads, {pads.begin(), pads.begin() + half}, 0);
  set_spatial(window.pads_end, {pads.begin() + half, pads.end()}, 0);
  set_spatial(window.dilations, attributes.integers("dilations"), 1);
  return window;
}

kernels::ConvShape uncut_convolution(Op op, const Attributes& attributes,
                                     const std::vector<TensorType>& operands, const Shape& result) {
  const bool input_gradient = op == Op::kConvInputGrad, weight_gradient = op == Op::kConvWeightGrad;
  const Shape& x = input_gradient ? result : operands[0].shape;
  const Shape& w = weight_gradient ? result : operands[1].shape;
  const Shape& y = input_gradient    ? operands[0].shape
                   : weight_gradient ? operands[1].shape
                                     : result;
  kernels::ConvShape shape = {};
  shape.batch = x[0];
  shape.groups = attributes.integer("groups");
  shape.input_channels = w[1];
  shape.output_channels = w[0] / shape.groups;
  shape.window = window_shape(attributes, x, y, spatial_of(w));
  return shape;
}

}  // namespace sgtc
