// Single-precision functions that are evaluated in double precision and rounded once: they are rare
// in training, and this way one set of polynomials serves both precisions.
#pragma once

#include "math/double.h"
#include "math/power.h"
#include "math/trigonometric.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

template <typename V>
using DoubleOf = typename Traits<V>::Double;

template <typename V>
SGTC_INLINE DoubleOf<V> widen(V x) {
  return convert<DoubleOf<V>>(x);
}

template <typename V>
SGTC_INLINE V sin_single(V x) {
  const auto reduced = reduce_single(x);
  return if_finite(x, odd_sign(x, convert<V>(sin_of_quadrant(reduced, reduced.quadrant))));
}

template <typename V>
SGTC_INLINE V cos_single(V x) {
  const auto reduced = reduce_single(x);
  return if_finite(x, convert<V>(sin_of_quadrant(reduced, reduced.quadrant + 1)));
}

template <typename V>
SGTC_INLINE V tan_single(V x) {
  return if_finite(x, odd_sign(x, convert<V>(tan_of_reduced(reduce_single(x)))));
}

template <typename V>
SGTC_INLINE V pow_single(V x, V y) {
  const auto a = widen(x), b = widen(y);
  return convert<V>(power_or_special(a, b, power_of_positive_short(absolute(a), b)));
}

/// The remainder of x / y with the sign of x, exact. The quotient can have 277 bits: eleven steps
/// take 26 bits each, with products that a double holds exactly.
template <typename V>
SGTC_INLINE V fmod_single(V x, V y) {
  using D = DoubleOf<V>;
  const D divisor = absolute(widen(y));
  const D dividend = absolute(widen(x));
  D rest = dividend;
  double power = 0x1p260;
#pragma clang loop unroll(disable)
  for (int step = 0; step < 11; ++step, power *= 0x1p-26) {
    const D part = divisor * power;
    const D quotient = __builtin_elementwise_trunc(rest / part);
    rest = fma(-quotient, part, rest);
    rest = rest < D{} ? rest + part : rest;
  }
  const auto whole = (divisor == infinity<D>() ? splat<D>(1) : D{}) *
                     (dividend < infinity<D>() ? splat<D>(1) : D{});
  return copy_sign(convert<V>(whole > D{} ? dividend : rest), x);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
