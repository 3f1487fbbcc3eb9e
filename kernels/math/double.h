// Double-precision functions, within 4 units in the last place.
#pragma once

#include "math/elementary.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// log(1 + f) + k log(2) + c for f in [sqrt(1/2) - 1, sqrt(2) - 1], an integer k and a tiny c.
/// With s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + 2 s^2 A(s^2))).
template <typename D>
SGTC_INLINE D log_of_parts_double(D f, D k, D c) {
  const D half_square = f * f * 0.5;
  const D s = f / (f + 2);
  const D z = s * s;
  const D series = s * fma(z + z, polynomial(z, kAtanhF64), half_square);
  const D low = fma(k, splat<D>(kLn2F64Low), c);
  return fma(k, splat<D>(kLn2F64High), f - (half_square - (series + low)));
}

template <typename D>
SGTC_INLINE D log_double(D x) {
  const Split<D> parts = split(x);
  return log_or_special(x, log_of_parts_double(parts.significand - 1, parts.exponent, D{}));
}

/// log(1 + x); the rounding error of 1 + x enters as a correction.
template <typename D>
SGTC_INLINE D log1p_double(D x) {
  const D u = x + 1;
  const Split<D> parts = split(u);
  const D lost = (u > splat<D>(2) ? 1 - (u - x) : x - (u - 1)) / u;
  const D value = log_of_parts_double(parts.significand - 1, parts.exponent, lost);
  return x == D{} ? x : log_or_special(u, value);
}

/// exp(x) - 1.
template <typename D>
SGTC_INLINE D expm1_double(D x) {
  const ExpParts<D> parts = exp_parts(at_most(at_least(x, -50), 1030), D{});
  // 1 - 2^-n joins the tail before the scaling, so that 2^n itself need not be representable.
  const D inverse = scale_by_power(splat<D>(1), -parts.power);
  const D value = scale_by_power(parts.tail + (1 - inverse), parts.power);
  return x == D{} ? x : value;
}

template <typename D>
SGTC_INLINE D softplus_double(D x) {
  return (x > D{} ? x : D{}) + log1p_double(exp(-absolute(x))) + (x != x ? x : D{});
}

/// (t + t / (t + 1)) / 2 with t = exp(|x|) - 1; the square of exp(|x| / 2) where that overflows.
template <typename D>
SGTC_INLINE D sinh_double(D x) {
  const D a = absolute(x);
  const D t = expm1_double(a);
  const D half = exp(a * 0.5);
  return copy_sign(a < splat<D>(22) ? (t + t / (t + 1)) * 0.5 : half * 0.5 * half, x);
}

template <typename D>
SGTC_INLINE D cosh_double(D x) {
  const D half = exp(absolute(x) * 0.5);
  return fma(half * 0.5, half, 0.5 / (half * half));
}

template <typename D>
SGTC_INLINE D tanh_double(D x) {
  const D t = expm1_double(absolute(x) * -2);
  return copy_sign(t / (t + 2), x);
}

template <typename D>
SGTC_INLINE D asinh_double(D x) {
  const D a = absolute(x);
  const D square = a * a;
  const D small = log1p_double(a + square / (square_root(square + 1) + 1));
  const D large = log_double(a) + kLn2PairF64High;
  return copy_sign(a < splat<D>(0x1p28) ? small : large, x);
}

template <typename D>
SGTC_INLINE D acosh_double(D x) {
  const D t = x - 1;
  const D small = log1p_double(t + square_root(fma(t, t, t + t)));
  const D large = log_double(x) + kLn2PairF64High;
  return x < splat<D>(1) ? not_a_number<D>() : (x < splat<D>(0x1p28) ? small : large);
}

template <typename D>
SGTC_INLINE D atanh_double(D x) {
  const D a = absolute(x);
  const D value = log1p_double((a + a) / (1 - a)) * 0.5;
  return copy_sign(a > splat<D>(1) ? not_a_number<D>() : value, x);
}

/// An odd polynomial below 0.9, 1 - exp(-x^2) R(x) up to 6, where the result has become 1.
template <typename D>
SGTC_INLINE D erf_double(D x) {
  const D a = absolute(x);
  const D square = a * a;
  const D low = fma(a, polynomial(square, kErfF64), a);
  const D b = at_most(a, 6);
  const D t = (b - 2.5) / (b + 2.5);
  const D high = 1 - exp(-(b * b)) * polynomial(t, kErfcScaledF64);
  return copy_sign(a < splat<D>(0.9) ? low : high, x);
}

/// atan by reduction to |t| <= tan(pi/8): |x|, (|x| - 1) / (|x| + 1) or -1 / |x|.
template <typename D>
SGTC_INLINE D atan_double(D x) {
  const D a = absolute(x);
  const auto low = a < splat<D>(0.41421356237309503);
  const auto high = a > splat<D>(2.414213562373095);
  const D one = splat<D>(1);
  const D numerator = low ? a : (high ? -one : a - 1);
  const D denominator = low ? one : (high ? a : a + 1);
  const D t = numerator / denominator;
  const D base = low ? D{} : (high ? splat<D>(kPiHalfF64High) : splat<D>(kPiQuarterF64High));
  const D rest = low ? D{} : (high ? splat<D>(kPiHalfF64Low) : splat<D>(kPiQuarterF64Low));
  const D z = t * t;
  return copy_sign(base + (t + fma(t * z, polynomial(z, kAtanF64), rest)), x);
}

/// What asin and acos share: y + y^3 P(y^2) with y = |x| below 1/2, else sqrt((1 - |x|) / 2).
template <typename D>
struct ArcParts {
  D magnitude;
  D value;
};

template <typename D>
SGTC_INLINE ArcParts<D> arc_parts(D x) {
  const D a = absolute(x);
  const auto small = a < splat<D>(0.5);
  const D z = small ? a * a : (1 - a) * 0.5;
  const D y = small ? a : square_root(z);
  return {a, fma(y * z, polynomial(z, kAsinF64), y)};
}

template <typename D>
SGTC_INLINE D asin_double(D x) {
  const ArcParts<D> arc = arc_parts(x);
  const D large = kPiHalfF64High - (arc.value * 2 - kPiHalfF64Low);
  return copy_sign(arc.magnitude < splat<D>(0.5) ? arc.value : large, x);
}

template <typename D>
SGTC_INLINE D acos_double(D x) {
  const ArcParts<D> arc = arc_parts(x);
  const D small = kPiHalfF64High - (copy_sign(arc.value, x) - kPiHalfF64Low);
  const D twice = arc.value * 2;
  const D large = x < D{} ? kPiF64High - (twice - kPiF64Low) : twice;
  return arc.magnitude < splat<D>(0.5) ? small : large;
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
