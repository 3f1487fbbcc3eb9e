// Short names for appending expressions to a graph: gradients, optimizers and expansions read as
// formulas.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// Appends nodes to `graph` with the phase and sources of `graph.context()`. Operands broadcast as
/// NumPy does. A double stands for a scalar constant with the dtype of the other operand; equal
/// constants are one leaf.
class Expressions {
 public:
  explicit Expressions(Graph& graph) : graph_(graph) {}

  Graph& graph() const { return graph_; }
  /// By value: appending to the graph moves its values.
  Shape shape(ValueId x) const { return graph_.shape(x); }
  DType dtype(ValueId x) const { return graph_.dtype(x); }
  int64_t rank(ValueId x) const { return static_cast<int64_t>(graph_.shape(x).size()); }
  int64_t size(ValueId x, int64_t axis) const { return graph_.shape(x)[static_cast<size_t>(axis)]; }

  ValueId apply(Op op, std::vector<ValueId> operands, Attributes attributes = {}) {
    return graph_.add(op, std::move(operands), std::move(attributes));
  }
  ValueId constant(DType dtype, double value);

  ValueId neg(ValueId x) { return apply(Op::kNeg, {x}); }
  ValueId exp(ValueId x) { return apply(Op::kExp, {x}); }
  ValueId sqrt(ValueId x) { return apply(Op::kSqrt, {x}); }
  ValueId rsqrt(ValueId x) { return apply(Op::kRsqrt, {x}); }
  ValueId square(ValueId x) { return mul(x, x); }

  ValueId add(ValueId a, ValueId b) { return apply(Op::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return apply(Op::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return apply(Op::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return apply(Op::kDiv, {a, b}); }
  ValueId add(ValueId a, double b) { return add(a, constant(dtype(a), b)); }
  ValueId sub(double a, ValueId b) { return sub(constant(dtype(b), a), b); }
  ValueId sub(ValueId a, double b) { return sub(a, constant(dtype(a), b)); }
  ValueId mul(ValueId a, double b) { return mul(a, constant(dtype(a), b)); }
  ValueId div(double a, ValueId b) { return div(constant(dtype(b), a), b); }
  ValueId div(ValueId a, double b) { return div(a, constant(dtype(a), b)); }

  /// A comparison with a constant.
  ValueId compare(Op op, ValueId a, double b) { return apply(op, {a, constant(dtype(a), b)}); }
  ValueId where(ValueId condition, ValueId a, ValueId b) {
    return apply(Op::kWhere, {condition, a, b});
  }
  /// `a` where the condition holds, else 0.
  ValueId keep(ValueId condition, ValueId a) { return where(condition, a, constant(dtype(a), 0)); }
  /// `a` where the condition does not hold, else 0.
  ValueId drop(ValueId condition, ValueId a) { return where(condition, constant(dtype(a), 0), a); }

  /// These return `x` itself when nothing changes.
  ValueId cast(ValueId x, DType dtype);
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId broadcast(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& perm);

  /// The sum over `axes`, which stay with size 1.
  ValueId sum(ValueId x, const std::vector<int64_t>& axes);
  /// The sum of all elements as a scalar of shape [].
  ValueId sum_all(ValueId x);
  /// Undoes NumPy broadcasting: sums `x` over the dimensions in which `shape` was stretched.
  ValueId sum_to(ValueId x, const Shape& shape);
  ValueId zeros(DType dtype, const Shape& shape) { return broadcast(constant(dtype, 0), shape); }
  /// Indices along `axis`, of size 1 in all other dimensions of `shape`.
  ValueId index_along(const Shape& shape, int64_t axis, DType dtype);
  /// Part of `x` along `axis`.
  ValueId slice_axis(ValueId x, int64_t axis, int64_t start, int64_t size);

 private:
  Graph& graph_;
  std::map<std::pair<DType, double>, ValueId> constants_;
};

/// The permutation that undoes `perm`.
std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& perm);

/// The value that all elements of a constant have; nothing for others and for empty constants.
std::optional<double> uniform_constant(const Graph& graph, ValueId id);

}  // namespace sgtc
