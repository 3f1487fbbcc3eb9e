// Reductions and scans of the interpreter.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

double combine(Op op, double a, double b) {
  switch (op) {
    case Op::kReduceSum:
      return a + b;
    case Op::kReduceProd:
      return a * b;
    case Op::kReduceMax:
      return a >= b || std::isnan(a) ? a : b;
    default:
      return a <= b || std::isnan(a) ? a : b;
  }
}

int64_t combine(Op op, int64_t a, int64_t b, bool is_u64) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  const bool less = is_u64 ? x < y : a < b;
  switch (op) {
    case Op::kReduceSum:
      return static_cast<int64_t>(x + y);
    case Op::kReduceProd:
      return static_cast<int64_t>(x * y);
    case Op::kReduceMax:
      return less ? b : a;
    default:
      return less ? a : b;
  }
}

void reduce(const Call& call) {
  const Tensor& x = call.operand(0);
  Tensor& y = call.result();
  std::vector<bool> started(static_cast<size_t>(y.count()), false);
  const int64_t empty = call.op == Op::kReduceProd ? 1 : 0;
  std::fill(y.reals.begin(), y.reals.end(), static_cast<double>(empty));
  std::fill(y.integers.begin(), y.integers.end(), empty);
  size_t i = 0;
  for_each_index(call.shape(0), [&](const Shape& index) {
    const auto to = static_cast<size_t>(position_in(y.type.shape, index));
    if (!started[to]) {
      y.copy_element(static_cast<int64_t>(to), x, static_cast<int64_t>(i));
    } else if (x.is_real()) {
      y.reals[to] = combine(call.op, y.reals[to], x.reals[i]);
    } else {
      y.integers[to] =
          combine(call.op, y.integers[to], x.integers[i], x.type.dtype == DType::kUInt64);
    }
    started[to] = true;
    ++i;
  });
  for (double& value : y.reals) value = call.rounded(value);
  for (int64_t& value : y.integers) value = wrap_to(y.type.dtype, value);
}

// Whether element `a` comes strictly before `b` in descending order; NaN is the greatest.
bool is_greater(const Tensor& x, int64_t a, int64_t b) {
  const auto i = static_cast<size_t>(a);
  const auto j = static_cast<size_t>(b);
  if (!x.is_real()) {
    return x.type.dtype == DType::kUInt64
               ? static_cast<uint64_t>(x.integers[i]) > static_cast<uint64_t>(x.integers[j])
               : x.integers[i] > x.integers[j];
  }
  if (std::isnan(x.reals[j])) return false;
  return std::isnan(x.reals[i]) || x.reals[i] > x.reals[j];
}

bool is_nan_at(const Tensor& x, int64_t i) {
  return x.is_real() && std::isnan(x.reals[static_cast<size_t>(i)]);
}

// Whether `a` beats `b` in arg_max or arg_min: NaN beats every number.
bool beats(const Call& call, int64_t a, int64_t b) {
  const Tensor& x = call.operand(0);
  if (call.op == Op::kArgMax) return is_greater(x, a, b);
  if (is_nan_at(x, b)) return false;
  return is_nan_at(x, a) || is_greater(x, b, a);
}

void arg_reduce(const Call& call) {
  const bool last = call.attributes.integer_or("select_last", 0) != 0;
  const AxisView view(call.shape(0), call.attributes.integer("axis"));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t n = 0; n < view.inner; ++n) {
      int64_t best = 0;
      for (int64_t i = 1; i < view.size; ++i) {
        const int64_t a = view.at(o, i, n);
        const int64_t b = view.at(o, best, n);
        if (beats(call, a, b) || (last && !beats(call, b, a))) best = i;
      }
      call.result().integers[static_cast<size_t>(o * view.inner + n)] = best;
    }
  }
}

void cum_sum(const Call& call) {
  const bool exclusive = call.attributes.integer_or("exclusive", 0) != 0;
  const bool reverse = call.attributes.integer_or("reverse", 0) != 0;
  const Tensor& x = call.operand(0);
  Tensor& y = call.result();
  const AxisView view(call.shape(0), call.attributes.integer("axis"));
  for (int64_t line = 0; line < view.outer * view.inner; ++line) {
    double real = 0;
    uint64_t integer = 0;
    for (int64_t i = 0; i < view.size; ++i) {
      const int64_t along = reverse ? view.size - 1 - i : i;
      const auto at = static_cast<size_t>(view.at(line / view.inner, along, line % view.inner));
      const double real_before = real;
      const uint64_t integer_before = integer;
      if (x.is_real()) {
        real += x.reals[at];
        y.reals[at] = call.rounded(exclusive ? real_before : real);
      } else {
        integer += static_cast<uint64_t>(x.integers[at]);
        y.integers[at] =
            wrap_to(x.type.dtype, static_cast<int64_t>(exclusive ? integer_before : integer));
      }
    }
  }
}

void top_k(const Call& call) {
  const bool largest = call.attributes.integer_or("largest", 1) != 0;
  const Tensor& x = call.operand(0);
  const AxisView view(call.shape(0), call.attributes.integer("axis"));
  const AxisView kept(call.result().type.shape, call.attributes.integer("axis"));
  std::vector<int64_t> order(static_cast<size_t>(view.size));
  for (int64_t line = 0; line < view.outer * view.inner; ++line) {
    const int64_t o = line / view.inner;
    const int64_t n = line % view.inner;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const int64_t i = view.at(o, a, n);
      const int64_t j = view.at(o, b, n);
      const bool before = largest ? is_greater(x, i, j) : is_greater(x, j, i);
      const bool after = largest ? is_greater(x, j, i) : is_greater(x, i, j);
      return before || (!after && a < b);
    });
    for (int64_t i = 0; i < kept.size; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      call.results[0].copy_element(kept.at(o, i, n), x, view.at(o, from, n));
      call.results[1].integers[static_cast<size_t>(kept.at(o, i, n))] = from;
    }
  }
}

}  // namespace

void reduction(const Call& call) {
  switch (call.op) {
    case Op::kArgMax:
    case Op::kArgMin:
      return arg_reduce(call);
    case Op::kCumSum:
      return cum_sum(call);
    case Op::kTopK:
      return top_k(call);
    default:
      return reduce(call);
  }
}

}  // namespace sgtc::interpret
