// fmod in double precision: the quotient can have two thousand bits, so the significand of the
// dividend is shifted and reduced as an integer, eleven bits a step.
#pragma once

#include "math/elementary.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// A positive finite number as significand * 2^exponent, with the significand below 2^53.
struct IntegerParts {
  uint64_t significand;
  int exponent;
};

SGTC_INLINE IntegerParts integer_parts(double x) {
  const uint64_t bits = bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & 0xfffffffffffff;
  if (exponent == 0) return {fraction, 1};
  return {fraction | 0x10000000000000, exponent};
}

/// significand * 2^exponent, exactly, where that is a double.
SGTC_INLINE double from_integer_parts(uint64_t significand, int exponent) {
  if (significand == 0) return 0;
  const int shift = __builtin_clzll(significand) - 11;
  if (exponent - shift < 1) return bit_cast<double>(significand << (exponent - 1));
  return bit_cast<double>((significand << shift & 0xfffffffffffff) | uint64_t(exponent - shift)
                                                                         << 52);
}

/// The remainder of x / y with the sign of x, exact.
SGTC_INLINE double fmod_double(double x, double y) {
  const double a = absolute(x), b = absolute(y);
  if (!(a < infinity<double>()) || !(b > 0)) return not_a_number<double>();
  if (a < b) return x;
  const IntegerParts dividend = integer_parts(a), divisor = integer_parts(b);
  uint64_t rest = dividend.significand % divisor.significand;
  for (int left = dividend.exponent - divisor.exponent; left > 0;) {
    const int step = left < 11 ? left : 11;
    rest = (rest << step) % divisor.significand;
    left -= step;
  }
  return copy_sign(from_integer_parts(rest, divisor.exponent), x);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
