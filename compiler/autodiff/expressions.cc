#include "autodiff/expressions.h"

#include <cmath>
#include <numeric>

namespace sgtc {

std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

std::optional<double> uniform_constant(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.kind != ValueKind::kConstant || value.literal->element_count() == 0) return {};
  const double first = value.literal->as_double(0);
  for (int64_t i = 1; i < value.literal->element_count(); ++i) {
    if (value.literal->as_double(i) != first) return {};
  }
  return first;
}

ValueId Expressions::constant(DType dtype, double value) {
  // A map cannot tell 0 from -0 nor find NaN: those get a leaf of their own.
  if (std::isnan(value) || (value == 0 && std::signbit(value))) {
    return graph_.add_scalar(dtype, value);
  }
  auto [entry, is_new] = constants_.try_emplace({dtype, value}, kNone);
  if (is_new) entry->second = graph_.add_scalar(dtype, value);
  return entry->second;
}

ValueId Expressions::cast(ValueId x, DType to) {
  if (dtype(x) == to) return x;
  return apply(Op::kCast, {x}, {{"to", std::string(name_of(to))}});
}

ValueId Expressions::reshape(ValueId x, const Shape& to) {
  if (shape(x) == to) return x;
  return apply(Op::kReshape, {x}, {{"shape", to}});
}

ValueId Expressions::broadcast(ValueId x, const Shape& to) {
  if (shape(x) == to) return x;
  return apply(Op::kBroadcast, {x}, {{"shape", to}});
}

ValueId Expressions::transpose(ValueId x, const std::vector<int64_t>& perm) {
  if (perm == all_axes(rank(x))) return x;
  return apply(Op::kTranspose, {x}, {{"perm", perm}});
}

ValueId Expressions::sum(ValueId x, const std::vector<int64_t>& axes) {
  if (axes.empty()) return x;
  return apply(Op::kReduceSum, {x}, {{"axes", axes}});
}

ValueId Expressions::sum_all(ValueId x) { return reshape(sum(x, all_axes(rank(x))), {}); }

ValueId Expressions::sum_to(ValueId x, const Shape& to) {
  const Shape from = shape(x);
  const size_t extra = from.size() - to.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i) {
    bool stretched = i < extra || (to[i - extra] == 1 && from[i] != 1);
    if (stretched && from[i] != 1) axes.push_back(static_cast<int64_t>(i));
  }
  return reshape(sum(x, axes), to);
}

ValueId Expressions::index_along(const Shape& shape, int64_t axis, DType dtype) {
  Shape sizes(shape.size(), 1);
  sizes[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  return apply(Op::kIota, {},
               {{"shape", sizes}, {"axis", axis}, {"dtype", std::string(name_of(dtype))}});
}

ValueId Expressions::slice_axis(ValueId x, int64_t axis, int64_t start, int64_t size) {
  Shape sizes = shape(x);
  std::vector<int64_t> starts(sizes.size(), 0);
  starts[static_cast<size_t>(axis)] = start;
  sizes[static_cast<size_t>(axis)] = size;
  return apply(Op::kSlice, {x},
               {{"starts", starts}, {"sizes", sizes}, {"steps", Shape(sizes.size(), 1)}});
}

}  // namespace sgtc
