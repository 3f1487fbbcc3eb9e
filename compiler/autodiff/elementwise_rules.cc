// Gradients of elementwise operators with one operand: upstream times the derivative, written in
// terms of the result y where that saves work.
#include <cmath>
#include <numbers>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

/// 1 - x^2, without cancellation near |x| = 1.
ValueId one_minus_square(Backward& b, ValueId x) { return b.mul(b.sub(1.0, x), b.add(x, 1.0)); }

}  // namespace

void neg(Backward& b) { b.give(0, b.neg(b.g())); }

void abs(Backward& b) { b.give(0, b.mul(b.g(), b.apply(Op::kSign, {b.x()}))); }

void exp(Backward& b) { b.give(0, b.mul(b.g(), b.y())); }

void log(Backward& b) { b.give(0, b.div(b.g(), b.x())); }

void sqrt(Backward& b) { b.give(0, b.div(b.mul(b.g(), 0.5), b.y())); }

void rsqrt(Backward& b) {
  ValueId cube = b.mul(b.square(b.y()), b.y());
  b.give(0, b.mul(b.mul(b.g(), -0.5), cube));
}

void reciprocal(Backward& b) { b.give(0, b.neg(b.mul(b.g(), b.square(b.y())))); }

void sin(Backward& b) { b.give(0, b.mul(b.g(), b.apply(Op::kCos, {b.x()}))); }

void cos(Backward& b) { b.give(0, b.neg(b.mul(b.g(), b.apply(Op::kSin, {b.x()})))); }

void tan(Backward& b) { b.give(0, b.mul(b.g(), b.add(b.square(b.y()), 1.0))); }

void asin(Backward& b) { b.give(0, b.mul(b.g(), b.rsqrt(one_minus_square(b, b.x())))); }

void acos(Backward& b) { b.give(0, b.neg(b.mul(b.g(), b.rsqrt(one_minus_square(b, b.x()))))); }

void atan(Backward& b) { b.give(0, b.div(b.g(), b.add(b.square(b.x()), 1.0))); }

void sinh(Backward& b) { b.give(0, b.mul(b.g(), b.apply(Op::kCosh, {b.x()}))); }

void cosh(Backward& b) { b.give(0, b.mul(b.g(), b.apply(Op::kSinh, {b.x()}))); }

void tanh(Backward& b) { b.give(0, b.mul(b.g(), one_minus_square(b, b.y()))); }

void asinh(Backward& b) { b.give(0, b.mul(b.g(), b.rsqrt(b.add(b.square(b.x()), 1.0)))); }

void acosh(Backward& b) {
  ValueId square_minus_one = b.mul(b.sub(b.x(), 1.0), b.add(b.x(), 1.0));
  b.give(0, b.mul(b.g(), b.rsqrt(square_minus_one)));
}

void atanh(Backward& b) { b.give(0, b.div(b.g(), one_minus_square(b, b.x()))); }

void erf(Backward& b) {
  ValueId bell = b.exp(b.neg(b.square(b.x())));
  b.give(0, b.mul(b.g(), b.mul(bell, 2.0 * std::numbers::inv_sqrtpi)));
}

void sigmoid(Backward& b) { b.give(0, b.mul(b.g(), b.mul(b.y(), b.sub(1.0, b.y())))); }

void softplus(Backward& b) { b.give(0, b.mul(b.g(), b.apply(Op::kSigmoid, {b.x()}))); }

void cast(Backward& b) { b.give(0, b.cast(b.g(), b.dtype(b.x()))); }

}  // namespace sgtc::gradient
