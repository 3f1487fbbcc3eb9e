// Gradients of indexed reads and writes: a read becomes a scatter-add into zeros, a write a read.
// Repeated and negative indices mean the same as in the forward operator.
#include <string>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

/// Indices with the batch dimensions spelled out: [..., batch_dims + k] for [..., k].
ValueId with_batch_indices(Backward& b, ValueId indices, int64_t batch_dims) {
  if (batch_dims == 0) return indices;
  Shape column = b.shape(indices);
  column.back() = 1;
  std::vector<ValueId> parts;
  for (int64_t axis = 0; axis < batch_dims; ++axis) {
    parts.push_back(b.broadcast(b.index_along(column, axis, b.dtype(indices)), column));
  }
  parts.push_back(indices);
  return b.apply(Op::kConcat, parts, {{"axis", b.rank(indices) - 1}});
}

ValueId zeros_like(Backward& b, ValueId x) { return b.zeros(b.dtype(x), b.shape(x)); }

/// The gradient of a gather's result, zero where the index is the one of padding. That index may
/// also be counted from the end.
ValueId without_padding(Backward& b) {
  if (!b.attributes().has("padding")) return b.g();
  const int64_t padding = b.attributes().integer("padding");
  Shape column = b.shape(b.x(1));
  const auto inner = static_cast<size_t>(b.rank(b.x()) - b.axis() - 1);
  column.insert(column.end(), inner, 1);
  ValueId index = b.reshape(b.x(1), column);
  const auto from_end = static_cast<double>(padding - b.size(b.x(), b.axis()));
  ValueId counted =
      b.apply(Op::kLogicalAnd, {b.compare(Op::kNotEqual, index, static_cast<double>(padding)),
                                b.compare(Op::kNotEqual, index, from_end)});
  return b.keep(counted, b.g());
}

/// The rules of scatter_elements and scatter_nd, which differ in how one reads back.
void scatter(Backward& b, Op op, Op read, const Attributes& read_attributes) {
  const std::string& reduction = b.attributes().text("reduction");
  const bool adds = reduction == "add";
  if (!adds && reduction != "none") {
    b.refuse("has no gradient with reduction " + reduction + "; use none or add");
    return;
  }
  ValueId indices = b.x(1);
  if (b.needs(0)) {
    b.give(0, adds ? b.g() : b.apply(op, {b.g(), indices, zeros_like(b, b.x(2))}, b.attributes()));
  }
  if (b.needs(2)) b.give(2, b.apply(read, {b.g(), indices}, read_attributes));
}

}  // namespace

void gather(Backward& b) {
  b.give(0, b.apply(Op::kScatterAdd, {zeros_like(b, b.x()), b.x(1), without_padding(b)},
                    {{"axis", b.axis()}}));
}

void gather_elements(Backward& b) {
  b.give(0, b.apply(Op::kScatterElements, {zeros_like(b, b.x()), b.x(1), b.g()},
                    {{"axis", b.axis()}, {"reduction", std::string("add")}}));
}

void gather_nd(Backward& b) {
  ValueId indices = with_batch_indices(b, b.x(1), b.attributes().integer_or("batch_dims", 0));
  b.give(0, b.apply(Op::kScatterNd, {zeros_like(b, b.x()), indices, b.g()},
                    {{"reduction", std::string("add")}}));
}

void pick(Backward& b) {
  const Shape whole = b.shape(b.x());
  const auto size = static_cast<double>(b.size(b.x(), b.axis()));
  ValueId index = b.x(1);
  ValueId is_negative = b.compare(Op::kLess, index, 0);
  ValueId counted = b.where(is_negative, b.add(index, size), index);
  ValueId position = b.index_along(whole, b.axis(), b.dtype(index));
  b.give(0, b.keep(b.apply(Op::kEqual, {position, counted}), b.g()));
}

void scatter_add(Backward& b) {
  b.give(0, b.g());
  if (b.needs(2)) b.give(2, b.apply(Op::kGather, {b.g(), b.x(1)}, b.attributes()));
}

void scatter_elements(Backward& b) {
  scatter(b, Op::kScatterElements, Op::kGatherElements, {{"axis", b.axis()}});
}

void scatter_nd(Backward& b) {
  scatter(b, Op::kScatterNd, Op::kGatherNd, {{"batch_dims", int64_t{0}}});
}

}  // namespace sgtc::gradient
