// Gradients of elementwise operators with several operands. `give` undoes broadcasting.
#include <cmath>
#include <optional>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

/// d(x^n)/dx for a constant n, without the branches that a variable exponent needs; kNone for the
/// exponents (fractions, negative ones) where x = 0 matters.
ValueId power_derivative(Backward& b, double n) {
  if (n == 1) return b.constant(b.dtype(b.x()), 1);
  if (n == 2) return b.mul(b.x(), 2.0);
  if (n == 3) return b.mul(b.square(b.x()), 3.0);
  if (n < 1) return kNone;
  ValueId lower = b.constant(b.dtype(b.x()), n - 1);
  return b.mul(b.apply(Op::kPow, {b.x(), lower}), n);
}

/// e * x^(e-1), and exactly 0 where e or the upstream gradient is 0 (there the power may be
/// infinite).
void pow_base(Backward& b) {
  std::optional<double> n = uniform_constant(b.graph(), b.x(1));
  if (n == 0.0) return;
  if (n) {
    if (ValueId derivative = power_derivative(b, *n); derivative != kNone) {
      b.give(0, b.mul(b.g(), derivative));
      return;
    }
  }
  ValueId e = b.cast(b.x(1), b.dtype(b.x(0)));
  ValueId derivative = b.mul(e, b.apply(Op::kPow, {b.x(0), b.sub(e, 1.0)}));
  ValueId is_zero = b.apply(Op::kLogicalOr, {b.compare(Op::kEqual, e, 0),  //
                                             b.compare(Op::kEqual, b.g(), 0)});
  b.give(0, b.drop(is_zero, b.mul(b.g(), derivative)));
}

/// y * log(x), and exactly 0 where x or the upstream gradient is 0. A negative base has no
/// derivative by the exponent: NaN.
void pow_exponent(Backward& b) {
  ValueId derivative = b.mul(b.y(), b.apply(Op::kLog, {b.x(0)}));
  ValueId is_zero =
      b.apply(Op::kLogicalOr, {b.compare(Op::kEqual, b.x(0), 0), b.compare(Op::kEqual, b.g(), 0)});
  ValueId gradient = b.drop(is_zero, b.mul(b.g(), derivative));
  b.give(1, b.cast(gradient, b.dtype(b.x(1))));
}

/// max and min: the first operand takes a tie (`first_wins` holds on ties).
void give_to_winner(Backward& b, ValueId first_wins) {
  if (b.needs(0)) b.give(0, b.keep(first_wins, b.g()));
  if (b.needs(1)) b.give(1, b.drop(first_wins, b.g()));
}

}  // namespace

void add(Backward& b) {
  b.give(0, b.g());
  b.give(1, b.g());
}

void sub(Backward& b) {
  b.give(0, b.g());
  if (b.needs(1)) b.give(1, b.neg(b.g()));
}

void mul(Backward& b) {
  if (b.needs(0)) b.give(0, b.mul(b.g(), b.x(1)));
  if (b.needs(1)) b.give(1, b.mul(b.g(), b.x(0)));
}

// A constant divisor is inverted first: the gradient is rounded twice and costs no division.
void div(Backward& b) {
  const std::optional<double> divisor = uniform_constant(b.graph(), b.x(1));
  const bool inverts = divisor && std::isnormal(static_cast<float>(1 / *divisor));
  const ValueId quotient = inverts ? b.mul(b.g(), 1 / *divisor) : b.div(b.g(), b.x(1));
  b.give(0, quotient);
  if (b.needs(1)) b.give(1, b.neg(b.mul(quotient, b.y())));
}

void pow(Backward& b) {
  if (b.needs(0)) pow_base(b);
  if (b.needs(1)) pow_exponent(b);
}

void mod(Backward& b) {
  b.give(0, b.g());
  if (!b.needs(1)) return;
  // y = x0 - q * x1 with an integer q, of which rounding recovers the exact value.
  ValueId q = b.apply(Op::kRound, {b.div(b.sub(b.x(0), b.y()), b.x(1))});
  b.give(1, b.neg(b.mul(b.g(), q)));
}

void max(Backward& b) {
  // max(x, 0) is relu, whose gradient at 0 is 0.
  bool is_relu = uniform_constant(b.graph(), b.x(1)) == 0.0;
  Op op = is_relu ? Op::kGreater : Op::kGreaterEqual;
  give_to_winner(b, b.apply(op, {b.x(0), b.x(1)}));
}

void min(Backward& b) { give_to_winner(b, b.apply(Op::kLessEqual, {b.x(0), b.x(1)})); }

void where(Backward& b) {
  if (b.needs(1)) b.give(1, b.keep(b.x(0), b.g()));
  if (b.needs(2)) b.give(2, b.drop(b.x(0), b.g()));
}

}  // namespace sgtc::gradient
