// Pools over windows and over all spatial positions.
#include <algorithm>
#include <cmath>

#include "import/checks.h"
#include "import/norms.h"
#include "import/window.h"
#include "ir/limits.h"
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

Attributes pool_attributes(const Window& window, const Shape& output) {
  return {{"kernel", window.kernel},
          {"strides", window.strides},
          {"pads", window.pads},
          {"dilations", window.dilations},
          {"output", output}};
}

struct Pool {
  Window window;
  Shape output;  // spatial sizes
};

Pool pool_of(Lowering& n, ValueId x) {
  const Shape input = spatial_sizes(n.shape(x));
  const Window window = window_of(n, {}, input);
  return {window, pooled_sizes(n, window, input)};
}

// The cells of all windows that the kernel's cell `tap` covers, [N, C, output…]; 0 in the padding.
ValueId cells_of_tap(Lowering& n, ValueId x, const Pool& pool, const Shape& tap) {
  const Shape input = spatial_sizes(n.shape(x));
  for (size_t i = 0; i < tap.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t stride = pool.window.strides[i];
    const int64_t first = tap[i] * pool.window.dilations[i] - pool.window.pads[i];
    const int64_t last = first + (pool.output[i] - 1) * stride;
    std::vector<int64_t> low(n.shape(x).size(), 0), high = low;
    low[i + 2] = std::max<int64_t>(0, -first);
    high[i + 2] = std::max<int64_t>(0, last + 1 - input[i]);
    x = n.add(Op::kPad, {x, n.scalar(n.dtype(x), 0)}, {{"low", low}, {"high", high}});
    x = n.slice(x, axis, first + low[i + 2], pool.output[i], pool.output[i] > 1 ? stride : 1);
  }
  return x;
}

// Per output cell: whether the kernel's cell `tap` lies in the input, and there its position among
// the cells of a channel, in row-major or column-major order; both [output…].
struct TapPositions {
  std::vector<int64_t> inside, position;
};

TapPositions positions_of_tap(const Pool& pool, const Shape& input, const Shape& tap,
                              bool column_major) {
  Shape strides = row_major_strides(input);
  if (column_major) {
    for (size_t i = 0; i < input.size(); ++i)
      strides[i] = i == 0 ? 1 : strides[i - 1] * input[i - 1];
  }
  checked_list_size({element_count(pool.output)}, "the indices of the maxima");
  TapPositions result;
  const Shape steps = row_major_strides(pool.output);
  for (int64_t flat = 0; flat < element_count(pool.output); ++flat) {
    bool inside = true;
    int64_t position = 0;
    for (size_t i = 0; i < tap.size(); ++i) {
      const int64_t cell = flat / steps[i] % pool.output[i] * pool.window.strides[i] +
                           tap[i] * pool.window.dilations[i] - pool.window.pads[i];
      inside = inside && cell >= 0 && cell < input[i];
      position += cell * strides[i];
    }
    result.inside.push_back(inside ? 1 : 0);
    result.position.push_back(inside ? position : 0);
  }
  return result;
}

// The flat index in x of the first maximum of each window. `y` holds the maxima.
ValueId maximum_positions(Lowering& n, ValueId x, ValueId y, const Pool& pool) {
  const Shape shape = n.shape(x), input = spatial_sizes(shape);
  const bool column_major = n.integer("storage_order", 0) != 0;
  const auto is_nan = [&n](ValueId v) {
    return is_float(n.dtype(v)) ? n.add(Op::kIsNan, {v}) : n.scalar(DType::kBool, 0);
  };
  ValueId found = n.scalar(DType::kInt64, 0);
  const Shape taps = row_major_strides(pool.window.kernel);
  for (int64_t k = element_count(pool.window.kernel); k-- > 0;) {
    Shape tap;
    for (size_t i = 0; i < taps.size(); ++i) tap.push_back(k / taps[i] % pool.window.kernel[i]);
    const TapPositions at = positions_of_tap(pool, input, tap, column_major);
    const ValueId cell = cells_of_tap(n, x, pool, tap);
    const ValueId largest = n.add(Op::kLogicalOr, {n.add(Op::kEqual, {cell, y}), is_nan(cell)});
    const ValueId inside = n.constant(make_literal(DType::kBool, pool.output, at.inside));
    found = n.where(n.add(Op::kLogicalAnd, {largest, inside}),
                    n.constant(make_literal(DType::kInt64, pool.output, at.position)), found);
  }
  Shape channels(shape.size(), 1);
  channels[0] = shape[0];
  channels[1] = shape[1];
  const ValueId channel = n.reshape(n.iota({shape[0] * shape[1]}, 0, DType::kInt64), channels);
  return n.add(found, n.mul_scalar(channel, static_cast<double>(element_count(input))));
}

ValueIds lower_max_pool(Lowering& n) {
  const ValueId x = n.input(0);
  const Pool pool = pool_of(n, x);
  const ValueId y = n.add(Op::kMaxPool, {x}, pool_attributes(pool.window, pool.output));
  if (!n.wants_output(1)) return {y};
  return {y, maximum_positions(n, x, y, pool)};
}

// Puts the elements of x at their flat indices into zeros.
ValueIds lower_max_unpool(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x), input = spatial_sizes(shape);
  const Window window = window_of(n, {}, input);
  Shape whole{shape[0], shape[1]};
  for (size_t i = 0; i < input.size(); ++i) {
    whole.push_back((input[i] - 1) * window.strides[i] + window.span(i) - window.padding(i));
  }
  Shape target = n.has_input(2) ? n.integers_input(2, "the shape of the output") : whole;
  bool fits = target.size() == whole.size();
  for (size_t i = 0; fits && i < whole.size(); ++i) fits = target[i] >= whole[i] && whole[i] >= 0;
  if (!fits) {
    throw Error("the shape of the output: expected at least " + to_string(whole) + ", found " +
                to_string(target));
  }
  const int64_t count = element_count(shape);
  const ValueId zeros = n.broadcast(n.scalar(n.dtype(x), 0), {element_count(whole)});
  ValueId y =
      n.add(Op::kScatterNd, {zeros, n.reshape(n.input(1), {count, 1}), n.reshape(x, {count})},
            {{"reduction", std::string("none")}});
  y = n.reshape(y, whole);
  Shape high;
  for (size_t i = 0; i < whole.size(); ++i) high.push_back(target[i] - whole[i]);
  return {n.add(Op::kPad, {y, n.scalar(n.dtype(x), 0)},
                {{"low", Shape(whole.size(), 0)}, {"high", high}})};
}

// The sum over a window is a convolution with ones, which, unlike an average, does not ask how many
// cells count.
ValueIds lower_lp_pool(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x), input = spatial_sizes(shape);
  Pool pool = pool_of(n, x);
  const auto p = static_cast<double>(n.integer("p", 2));
  const size_t dims = input.size();
  for (size_t i = 0; i < dims; ++i) {
    const int64_t reach = (pool.output[i] - 1) * pool.window.strides[i] + pool.window.span(i);
    pool.window.pads[dims + i] = std::max<int64_t>(0, reach - input[i] - pool.window.pads[i]);
  }
  Shape single{shape[0] * shape[1], 1}, ones{1, 1}, target{shape[0], shape[1]};
  single.insert(single.end(), input.begin(), input.end());
  ones.insert(ones.end(), pool.window.kernel.begin(), pool.window.kernel.end());
  target.insert(target.end(), pool.output.begin(), pool.output.end());
  const ValueId sum =
      n.add(Op::kConv,
            {n.reshape(emit_powers(n, x, p), single), n.broadcast(n.scalar(n.dtype(x), 1), ones)},
            {{"strides", pool.window.strides},
             {"pads", pool.window.pads},
             {"dilations", pool.window.dilations},
             {"groups", int64_t{1}}});
  return {emit_root(n, n.reshape(sum, target), p)};
}

ValueIds lower_average_pool(Lowering& n) {
  const ValueId x = n.input(0);
  const Pool pool = pool_of(n, x);
  Attributes attributes = pool_attributes(pool.window, pool.output);
  attributes.set("count_include_pad", n.integer("count_include_pad", 0));
  return {n.add(Op::kAveragePool, {x}, attributes)};
}

const onnx::TensorShapeProto* declared_shape(const onnx::GraphProto& graph,
                                             const std::string& name) {
  for (const auto* list : {&graph.value_info(), &graph.output()}) {
    for (const onnx::ValueInfoProto& value : *list) {
      if (value.name() == name && value.type().tensor_type().has_shape()) {
        return &value.type().tensor_type().shape();
      }
    }
  }
  return nullptr;
}

// [N, C, spatial sizes of X]. ONNX Runtime's gradients of pools are given neither X nor its shape,
// but the file says which shape they have.
Shape shape_of_gradient(Lowering& n, ValueId dy) {
  Shape shape = n.shape(dy);
  spatial_sizes(shape);
  const onnx::TensorShapeProto* declared =
      declared_shape(n.state().model.proto().graph(), n.node().output(0));
  bool fits = declared && declared->dim_size() == static_cast<int>(shape.size());
  for (int i = 2; fits && i < declared->dim_size(); ++i) {
    fits = declared->dim(i).has_dim_value();
    shape[static_cast<size_t>(i)] = checked_factor(declared->dim(i).dim_value(), 0, "a dimension");
  }
  if (fits) return shape;
  throw Error("output \"" + n.node().output(0) + "\": expected a declared shape with " +
              std::to_string(shape.size()) +
              " dimensions and fixed spatial sizes, found none; save the file with its value_info");
}

// (dY).
ValueIds lower_average_pool_gradient(Lowering& n) {
  const ValueId dy = n.input(0);
  const Shape input = spatial_sizes(shape_of_gradient(n, dy));
  const Window window = window_of(n, {}, input);
  Attributes attributes = pool_attributes(window, pooled_sizes(n, window, input));
  attributes.set("count_include_pad", n.integer("count_include_pad", 0));
  attributes.set("input", input);
  return {n.add(Op::kAveragePoolGrad, {dy}, attributes)};
}

// (dY, flat indices of the maxima in X).
ValueIds lower_max_pool_gradient(Lowering& n) {
  const ValueId dy = n.input(0);
  const Shape shape = shape_of_gradient(n, dy);
  if (n.integer("storage_order", 0) != 0) {
    throw Error("attribute \"storage_order\": expected 0, found another order of the indices");
  }
  const int64_t count = element_count(n.shape(dy));
  check_size({n.dtype(dy), shape});
  const ValueId zeros = n.broadcast(n.scalar(n.dtype(dy), 0), {element_count(shape)});
  const ValueId dx =
      n.add(Op::kScatterNd, {zeros, n.reshape(n.input(1), {count, 1}), n.reshape(dy, {count})},
            {{"reduction", std::string("add")}});
  return {n.reshape(dx, shape)};
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
  const ValueId sum = n.reduce(Op::kReduceSum, emit_powers(n, x, p), spatial_axes(n, x));
  return {emit_root(n, sum, p)};
}

const std::vector<Rule> kRules = {
    {"", "MaxPool", {1, 8, 10, 11, 12, 22}, lower_max_pool},
    {"", "AveragePool", {1, 7, 10, 11, 19, 22}, lower_average_pool},
    {"", "LpPool", {2, 11, 18, 22}, lower_lp_pool},
    {"", "MaxUnpool", {9, 11, 22}, lower_max_unpool},
    {"", "GlobalAveragePool", {1, 22}, lower_global_average_pool},
    {"", "GlobalMaxPool", {1, 22}, lower_global_max_pool},
    {"", "GlobalLpPool", {2, 22}, lower_global_lp_pool},
    {"", "AveragePoolGrad", {1}, lower_average_pool_gradient},
    {"", "MaxPoolGrad", {1}, lower_max_pool_gradient},
};

}  // namespace

std::span<const Rule> pooling_rules() { return kRules; }

}  // namespace sgtc
