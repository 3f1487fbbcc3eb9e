#include "import/window.h"

#include <algorithm>

#include "import/checks.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

std::vector<int64_t> spatial_attribute(Lowering& node, const std::string& name, size_t length,
                                       int64_t otherwise, int64_t least) {
  const std::vector<int64_t> values = node.integers(name, std::vector<int64_t>(length, otherwise));
  if (values.size() != length) {
    throw Error("attribute \"" + name + "\": expected " + std::to_string(length) +
                " values, found " + std::to_string(values.size()));
  }
  for (int64_t value : values) {
    checked_factor(value, least, "attribute \"" + name + "\"");
  }
  return values;
}

}  // namespace

Shape spatial_sizes(const Shape& shape) {
  if (shape.size() < 3) {
    throw Error("expected an input of shape [N, C, …] with rank 3 or more, found " +
                to_string(shape));
  }
  return {shape.begin() + 2, shape.end()};
}

Attributes convolution_attributes(const Window& window, int64_t groups) {
  return {{"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations},
          {"groups", groups}};
}

void split_padding(Window& window, size_t dimension, int64_t total, bool upper) {
  total = std::max<int64_t>(0, total);
  const int64_t small = total / 2, large = total - total / 2;
  window.pads[dimension] = upper ? small : large;
  window.pads[dimension + window.kernel.size()] = upper ? large : small;
}

Window window_of(Lowering& node, const std::vector<int64_t>& kernel, const Shape& input,
                 bool transposed) {
  const size_t dims = input.size();
  if (!kernel.empty() && kernel.size() != dims) {
    throw Error("the weight: expected " + std::to_string(dims + 2) +
                " dimensions, as many as the input has, found " +
                std::to_string(kernel.size() + 2));
  }
  Window window;
  window.kernel = kernel;
  if (kernel.empty() || node.has_attribute("kernel_shape")) {
    window.kernel = spatial_attribute(node, "kernel_shape", dims, 0, 1);
  }
  for (const int64_t size : kernel) checked_factor(size, 0, "the size of a window");
  if (!kernel.empty() && window.kernel != kernel) {
    throw Error("attribute \"kernel_shape\": expected " + to_string(kernel) +
                " as in the weight, found " + to_string(window.kernel));
  }
  window.strides = spatial_attribute(node, "strides", dims, 1, 1);
  window.dilations = spatial_attribute(node, "dilations", dims, 1, 1);
  window.pads = spatial_attribute(node, "pads", 2 * dims, 0, 0);
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "NOTSET") return window;
  window.pads.assign(2 * dims, 0);
  if (mode == "VALID") return window;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    throw Error(
        "attribute \"auto_pad\": expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found "
        "\"" +
        mode + "\"");
  }
  for (size_t i = 0; i < dims && !transposed; ++i) {
    const int64_t output = (input[i] + window.strides[i] - 1) / window.strides[i];
    const int64_t total = (output - 1) * window.strides[i] + window.span(i) - input[i];
    split_padding(window, i, total, mode == "SAME_UPPER");
  }
  return window;
}

}  // namespace sgtc
