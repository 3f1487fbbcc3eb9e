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

/// scatter_elements or scatter_nd: how the node writes, and how one reads what it wrote.
struct Access {
  Backward& b;
  Op write_op, read_op;
  Attributes write_attributes, read_attributes;

  ValueId read(ValueId from) const { return b.apply(read_op, {from, b.x(1)}, read_attributes); }
  ValueId write(ValueId into, ValueId updates, const std::string& reduction) const {
    Attributes attributes = write_attributes;
    attributes.set("reduction", reduction);
    return b.apply(write_op, {into, b.x(1), updates}, attributes);
  }
};

/// y = data·Πu. As for reduce_prod, the product of the others leaves zeros out and is 0 where one
/// of the others is zero.
void scatter_product(const Access& access) {
  Backward& b = access.b;
  const ValueId data = b.x(0), updates = b.x(2);
  const DType dtype = b.dtype(data);
  if (b.needs(0)) {
    const ValueId ones = b.broadcast(b.constant(dtype, 1), b.shape(data));
    b.give(0, b.mul(b.g(), access.write(ones, updates, "mul")));
  }
  if (!b.needs(2)) return;
  const ValueId is_zero = b.compare(Op::kEqual, updates, 0);
  const ValueId non_zero = b.where(is_zero, b.constant(dtype, 1), updates);
  const ValueId product = access.read(access.write(data, non_zero, "mul"));
  const ValueId zero_count = b.cast(is_zero, dtype);
  const ValueId zeros = access.read(access.write(b.zeros(dtype, b.shape(data)), zero_count, "add"));
  const ValueId other_is_zero = b.compare(Op::kGreater, b.sub(zeros, zero_count), 0);
  b.give(2, b.drop(other_is_zero, b.mul(access.read(b.g()), b.div(product, non_zero))));
}

/// y = max(data, u…) or the minimum: the first that attains the bound takes the gradient, data
/// before the updates, and these in their order.
void scatter_bound(const Access& access) {
  Backward& b = access.b;
  const ValueId data_wins = b.apply(Op::kEqual, {b.x(0), b.y()});
  if (b.needs(0)) b.give(0, b.keep(data_wins, b.g()));
  if (!b.needs(2)) return;
  const Shape shape = b.shape(b.x(2));
  const int64_t count = element_count(shape);
  const ValueId position = b.reshape(b.index_along({count}, 0, DType::kInt64), shape);
  const ValueId none = b.constant(DType::kInt64, static_cast<double>(count));
  const ValueId attains =
      b.apply(Op::kLogicalAnd, {b.apply(Op::kLogicalNot, {access.read(data_wins)}),
                                b.apply(Op::kEqual, {b.x(2), access.read(b.y())})});
  const ValueId first =
      access.write(b.broadcast(none, b.shape(b.x(0))), b.where(attains, position, none), "min");
  b.give(2, b.keep(b.apply(Op::kEqual, {position, access.read(first)}), access.read(b.g())));
}

/// Indices of a plain write name an element once; ONNX leaves open which write wins otherwise.
void scatter(const Access& access) {
  Backward& b = access.b;
  const std::string& reduction = b.attributes().text("reduction");
  if (reduction == "mul") return scatter_product(access);
  if (reduction == "max" || reduction == "min") return scatter_bound(access);
  if (b.needs(0)) {
    const ValueId zeros = zeros_like(b, b.x(2));
    b.give(0, reduction == "add" ? b.g() : access.write(b.g(), zeros, "none"));
  }
  if (b.needs(2)) b.give(2, access.read(b.g()));
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
  scatter({b, Op::kScatterElements, Op::kGatherElements, b.attributes(), {{"axis", b.axis()}}});
}

void scatter_nd(Backward& b) {
  scatter({b, Op::kScatterNd, Op::kGatherNd, b.attributes(), {{"batch_dims", int64_t{0}}}});
}

}  // namespace sgtc::gradient
