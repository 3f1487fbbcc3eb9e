// pow: exp(y log|x|) with the sign and the special cases of IEEE 754.
//
// In double precision the logarithm needs about twelve bits more than a double has, because the
// exponent multiplies its error by up to 745. It is evaluated as a pair high + low; the pair
// arithmetic is exact sums and products by fma, with terms below 2^-64 left out.
#pragma once

#include "math/double.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

template <typename D>
struct Pair {
  D high;
  D low;
};

/// a + b for |a.high| >= |b.high| or a.high = 0.
template <typename D>
SGTC_INLINE Pair<D> add(Pair<D> a, Pair<D> b) {
  const D sum = a.high + b.high;
  return {sum, (a.high - sum) + b.high + (a.low + b.low)};
}

template <typename D>
SGTC_INLINE Pair<D> multiply(Pair<D> a, Pair<D> b) {
  const D product = a.high * b.high;
  return {product, fma(a.high, b.high, -product) + fma(a.high, b.low, a.low * b.high)};
}

/// log(x) for positive finite x, to about 64 bits.
template <typename D>
SGTC_INLINE Pair<D> log_pair(D x) {
  const Split<D> parts = split(x);
  const D f = parts.significand - 1;
  const D sum = parts.significand + 1;
  const D sum_low = parts.significand - (sum - 1);
  const D quotient = f / sum;
  const D remainder = fma(-quotient, sum_low, fma(-quotient, sum, f));
  const Pair<D> s = {quotient, remainder / sum};
  const Pair<D> z = multiply(s, s);
  // log = s (2 + z (2/3 + 2 z T(z))).
  const Pair<D> third = {splat<D>(kTwoThirdsF64High), splat<D>(kTwoThirdsF64Low)};
  const Pair<D> tail = {2 * z.high * polynomial(z.high, kAtanhTailF64), D{}};
  const Pair<D> inner = multiply(z, add(third, tail));
  const Pair<D> log = multiply(s, add(Pair<D>{splat<D>(2), D{}}, inner));
  const Pair<D> power = {parts.exponent * kLn2F64High, parts.exponent * kLn2F64Low};
  return add(power, log);
}

/// exp(y log x) for positive finite x.
template <typename D>
SGTC_INLINE D power_of_positive(D x, D y) {
  const Pair<D> log = log_pair(x);
  const D high = y * log.high;
  const D low = fma(y, log.high, -high) + y * log.low;
  const auto ordinary = absolute(high) < splat<D>(1000);
  const D bounded = ordinary ? high : copy_sign(splat<D>(1000), high);
  return exp(bounded, ordinary ? low : D{});
}

/// The same where x and y came from single precision and the result returns to it.
template <typename D>
SGTC_INLINE D power_of_positive_short(D x, D y) {
  const Split<D> parts = split(x);
  return exp(y * log_of_parts_double(parts.significand - 1, parts.exponent, D{}));
}

/// pow(x, y), given `value` = pow(|x|, y) for ordinary arguments.
template <typename D>
SGTC_INLINE D power_or_special(D x, D y, D value) {
  const D a = absolute(x);
  const D zero = D{};
  const D one = splat<D>(1);
  const D inf = infinity<D>();
  const D half = y * 0.5;
  const auto integral = __builtin_elementwise_floor(y) == y;
  const D odd = (integral ? one : zero) * (__builtin_elementwise_floor(half) == half ? zero : one);
  const D grows = y < zero ? zero : inf;    // a power of infinity
  const D shrinks = y < zero ? inf : zero;  // a power of zero
  value = a == zero ? shrinks : value;
  value = a == inf ? grows : value;
  value = absolute(y) == inf ? (a == one ? one : (a > one ? grows : shrinks)) : value;
  const D negative = copy_sign(one, x) < zero ? odd : zero;
  value = negative > zero ? -value : value;
  const D proper = x < zero ? (x == -inf ? one : (integral ? one : zero)) : one;
  value = proper > zero ? value : not_a_number<D>();
  value = x != x ? x : (y != y ? y : value);
  return y == zero ? one : (x == one ? one : value);
}

template <typename D>
SGTC_INLINE D pow_double(D x, D y) {
  return power_or_special(x, y, power_of_positive(absolute(x), y));
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
