// Reductions over axes.
#include <limits>

#include "import/lowering.h"
#include "import/norms.h"
#include "support/diagnostics.h"

namespace sgtc {

ValueId emit_powers(Emitter& e, ValueId x, double p) {
  if (p == 2) return e.mul(x, x);
  const ValueId size = e.add(Op::kAbs, {x});
  return p == 1 ? size : e.add(Op::kPow, {size, e.scalar(e.dtype(x), p)});
}

ValueId emit_root(Emitter& e, ValueId sum, double p) {
  if (p == 1) return sum;
  const ValueId zero = e.scalar(e.dtype(sum), 0);
  const ValueId nothing = e.add(Op::kEqual, {sum, zero});
  const ValueId safe = e.where(nothing, e.scalar(e.dtype(sum), 1), sum);
  const ValueId root =
      p == 2 ? e.add(Op::kSqrt, {safe}) : e.add(Op::kPow, {safe, e.scalar(e.dtype(sum), 1 / p)});
  return e.where(nothing, zero, root);
}

namespace {

using Axes = std::vector<int64_t>;

// The axes of the node; nothing when it is to return its input (noop_with_empty_axes).
std::optional<Axes> reduced_axes(Lowering& n) {
  const int64_t rank = n.input_rank(0);
  const std::optional<Axes> given = n.axes(1);
  if (given && !given->empty()) return normalized_axes(*given, rank);
  if (n.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  return all_axes(rank);
}

// Runs `reduce` (which keeps dimensions) over the node's axes.
template <typename Reduce>
ValueIds over_axes(Lowering& n, Reduce reduce) {
  const std::optional<Axes> axes = reduced_axes(n);
  const ValueId x = n.input(0);
  if (!axes) return {x};
  const ValueId reduced = reduce(x, *axes);
  return {n.integer("keepdims", 1) != 0 ? reduced : n.squeeze(reduced, *axes)};
}

// What a maximum or minimum of no elements is: the end of the dtype's range.
ValueId bound_of_nothing(Lowering& n, DType dtype, bool lowest) {
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return n.scalar(dtype, lowest ? -infinity : infinity);
  }
  const int64_t bits = 8 * size_of(dtype);
  if (dtype == DType::kBool) return n.scalar(dtype, lowest ? 0 : 1);
  int64_t bound = lowest ? 0 : -1;  // of unsigned types, all bits
  if (!is_unsigned(dtype)) bound = lowest ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits);
  if (is_unsigned(dtype) && bits < 64 && !lowest) bound = (int64_t{1} << bits) - 1;
  return n.constant(make_literal(dtype, {}, std::vector<int64_t>{bound}));
}

// A maximum or minimum, also of nothing, which the Graph's operators refuse.
ValueId extreme(Lowering& n, Op op, ValueId x, const Axes& axes) {
  Shape kept = n.shape(x);
  if (element_count(kept) != 0) return n.reduce(op, x, axes);
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return n.broadcast(bound_of_nothing(n, n.dtype(x), op == Op::kReduceMax), kept);
}

template <Op op>
ValueIds simple(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) {
    const bool is_extreme = op == Op::kReduceMax || op == Op::kReduceMin;
    if (is_extreme && element_count(n.shape(x)) == 0) return extreme(n, op, x, axes);
    if (n.dtype(x) != DType::kBool) return n.reduce(op, x, axes);
    return n.cast(n.reduce(op, n.cast(x, DType::kUInt8), axes), DType::kBool);
  });
}

ValueIds lower_mean(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) { return n.mean(x, axes); });
}

ValueIds lower_l1(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) {
    return n.reduce(Op::kReduceSum, n.add(Op::kAbs, {x}), axes);
  });
}

ValueIds lower_sum_square(Lowering& n) {
  return over_axes(
      n, [&n](ValueId x, const Axes& axes) { return n.reduce(Op::kReduceSum, n.mul(x, x), axes); });
}

ValueIds lower_l2(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) {
    return emit_root(n, n.reduce(Op::kReduceSum, emit_powers(n, x, 2), axes), 2);
  });
}

ValueIds lower_log_sum(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) {
    return n.add(Op::kLog, {n.reduce(Op::kReduceSum, x, axes)});
  });
}

// log Σ exp(x - m) + m with the maximum m, or 0 in its place where m is infinite.
ValueIds lower_log_sum_exp(Lowering& n) {
  return over_axes(n, [&n](ValueId x, const Axes& axes) {
    const ValueId maximum = extreme(n, Op::kReduceMax, x, axes);
    const ValueId infinite =
        n.add(Op::kIsInf, {maximum}, {{"positive", int64_t{1}}, {"negative", int64_t{1}}});
    const ValueId shift = n.where(infinite, n.scalar(n.dtype(x), 0), maximum);
    const ValueId sum = n.reduce(Op::kReduceSum, n.exp(n.sub(x, shift)), axes);
    return n.add(n.add(Op::kLog, {sum}), shift);
  });
}

const std::vector<Rule> kRules = {
    {"", "ReduceSum", {1, 11, 13}, simple<Op::kReduceSum>},
    {"", "ReduceMax", {1, 11, 12, 13, 18, 20}, simple<Op::kReduceMax>},
    {"", "ReduceMin", {1, 11, 12, 13, 18, 20}, simple<Op::kReduceMin>},
    {"", "ReduceProd", {1, 11, 13, 18}, simple<Op::kReduceProd>},
    {"", "ReduceMean", {1, 11, 13, 18}, lower_mean},
    {"", "ReduceL1", {1, 11, 13, 18}, lower_l1},
    {"", "ReduceL2", {1, 11, 13, 18}, lower_l2},
    {"", "ReduceSumSquare", {1, 11, 13, 18}, lower_sum_square},
    {"", "ReduceLogSum", {1, 11, 13, 18}, lower_log_sum},
    {"", "ReduceLogSumExp", {1, 11, 13, 18}, lower_log_sum_exp},
};

}  // namespace

std::span<const Rule> reduction_rules() { return kRules; }

}  // namespace sgtc
