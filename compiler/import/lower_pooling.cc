// Pools over windows and over all spatial positions.
#include <cmath>

#include "import/window.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// With ceil_mode a last window that would start in the padding behind the input is left out.
Shape pooled_sizes(Lowering& n, const Window& window, const Shape& input) {
  const bool ceil = n.integer("ceil_mode", 0) != 0;
  Shape output;
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t free = input[i] + window.padding(i) - window.span(i);
    if (free < 0) {
      throw Error("the window of " + std::to_string(window.span(i)) +
                  " cells is larger than the padded input of " +
                  std::to_string(input[i] + window.padding(i)));
    }
    const int64_t stride = window.strides[i];
    int64_t size = (ceil ? (free + stride - 1) / stride : free / stride) + 1;
    if (ceil && (size - 1) * stride >= input[i] + window.pads[i]) --size;
    output.push_back(size);
  }
  return output;
}

Attributes pool_attributes(Lowering& n, const Shape& input) {
  const Window window = window_of(n, {}, input);
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations},
          {"output", pooled_sizes(n, window, input)}};
}

ValueIds lower_max_pool(Lowering& n) {
  if (n.wants_output(1)) {
    throw Error(
        "the second output (indices) of MaxPool is not supported; export the model "
        "without return_indices");
  }
  const ValueId x = n.input(0);
  return {n.add(Op::kMaxPool, {x}, pool_attributes(n, spatial_sizes(n.shape(x))))};
}

ValueIds lower_average_pool(Lowering& n) {
  const ValueId x = n.input(0);
  Attributes attributes = pool_attributes(n, spatial_sizes(n.shape(x)));
  attributes.set("count_include_pad", n.integer("count_include_pad", 0));
  return {n.add(Op::kAveragePool, {x}, attributes)};
}

std::vector<int64_t> spatial_axes(Lowering& n, ValueId x) {
  spatial_sizes(n.shape(x));
  std::vector<int64_t> axes = all_axes(n.rank(x));
  axes.erase(axes.begin(), axes.begin() + 2);
  return axes;
}

ValueIds lower_global_average_pool(Lowering& n) {
  const ValueId x = n.input(0);
  return {n.mean(x, spatial_axes(n, x))};
}

ValueIds lower_global_max_pool(Lowering& n) {
  const ValueId x = n.input(0);
  return {n.reduce(Op::kReduceMax, x, spatial_axes(n, x))};
}

ValueIds lower_global_lp_pool(Lowering& n) {
  const ValueId x = n.input(0);
  const auto p = static_cast<double>(n.integer("p", 2));
  const ValueId exponent = n.scalar(n.dtype(x), p), root = n.scalar(n.dtype(x), 1 / p);
  const ValueId powers = n.add(Op::kPow, {n.add(Op::kAbs, {x}), exponent});
  return {n.add(Op::kPow, {n.reduce(Op::kReduceSum, powers, spatial_axes(n, x)), root})};
}

const std::vector<Rule> kRules = {
    {"", "MaxPool", {1, 8, 10, 11, 12, 22}, lower_max_pool},
    {"", "AveragePool", {1, 7, 10, 11, 19, 22}, lower_average_pool},
    {"", "GlobalAveragePool", {1, 22}, lower_global_average_pool},
    {"", "GlobalMaxPool", {1, 22}, lower_global_max_pool},
    {"", "GlobalLpPool", {2, 22}, lower_global_lp_pool},
};

}  // namespace

std::span<const Rule> pooling_rules() { return kRules; }

}  // namespace sgtc
