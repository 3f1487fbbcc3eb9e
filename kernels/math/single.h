// Fast single-precision functions: those that training spends its time in are evaluated in single
// precision; the others (single_wide.h) in double precision.
#pragma once

#include "math/elementary.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// log(1 + f) + k log(2) for f in [sqrt(1/2) - 1, sqrt(2) - 1] and an integer k.
template <typename V>
SGTC_INLINE V log_of_parts(V f, V k) {
  const V square = f * f;
  V sum = f * square * polynomial(f, kLogF32);
  sum = fma(k, splat<V>(kLn2F32Low), sum);
  sum = fma(square, splat<V>(-0.5f), sum);
  return fma(k, splat<V>(kLn2F32High), f + sum);
}

template <typename V>
SGTC_INLINE V log_single(V x) {
  const Split<V> parts = split(x);
  return log_or_special(x, log_of_parts(parts.significand - 1, parts.exponent));
}

/// log(1 + x) for x in [0, 1].
template <typename V>
SGTC_INLINE V log1p_of_fraction(V x) {
  const auto upper = x > splat<V>(0.41421356f);
  return log_of_parts(upper ? fma(x, 0.5f, -0.5f) : x, upper ? splat<V>(1) : V{});
}

template <typename V>
SGTC_INLINE V softplus_single(V x) {
  return (x > V{} ? x : V{}) + log1p_of_fraction(exp(-absolute(x))) + (x != x ? x : V{});
}

/// An odd polynomial below 0.63, 1 - 2 / (exp(2 |x|) + 1) above.
template <typename V>
SGTC_INLINE V tanh_single(V x) {
  const V a = absolute(x);
  const V square = a * a;
  const V low = fma(a * square, polynomial(square, kTanhF32), a);
  const V high = 1 - 2 / (exp(a + a) + 1);
  return copy_sign(a < splat<V>(0.63f) ? low : high, x);
}

/// An odd polynomial below 0.9, 1 - exp(-p(|x|)) above.
template <typename V>
SGTC_INLINE V erf_single(V x) {
  const V a = absolute(x);
  const V square = a * a;
  const V low = fma(a, polynomial(square, kErfF32), a);
  const V high = 1 - exp(-polynomial(at_most(a, 3.95f), kErfLogF32));
  return copy_sign(a < splat<V>(0.9f) ? low : high, x);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
