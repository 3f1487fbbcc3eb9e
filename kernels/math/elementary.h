// What the functions of float and double share: their formats, splitting and scaling by powers of
// two, the exponential function and what follows from it.
//
// All functions are branch-free over V (float, double or a vector of them) and treat zeros,
// infinities, NaN and subnormal numbers in the flow of the computation or by a final selection.
// Integers come from floating-point numbers by adding 1.5 * 2^mantissa, never by a conversion,
// because the conversion of NaN or of a large number is undefined.
#pragma once

#include "math/coefficients.h"
#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

template <typename E>
struct Format;

template <>
struct Format<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr uint32_t kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer
  static constexpr float kSmallestNormal = 0x1p-126f;
  static constexpr float kExpLow = -150, kExpHigh = 130;
  static constexpr float kLog2E = kLog2EF32, kLn2High = kLn2F32High, kLn2Low = kLn2F32Low;
  static constexpr uint32_t kSqrtHalfBits = 0x3f3504f3;
  static constexpr float kInfinity = __builtin_inff();
  static constexpr float kNaN = __builtin_nanf("");
  static constexpr const auto& kExp = kExpF32;
};

template <>
struct Format<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr uint64_t kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kSmallestNormal = 0x1p-1022;
  static constexpr double kExpLow = -1080, kExpHigh = 1030;
  static constexpr double kLog2E = kLog2EF64, kLn2High = kLn2F64High, kLn2Low = kLn2F64Low;
  static constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  static constexpr double kInfinity = __builtin_inf();
  static constexpr double kNaN = __builtin_nan("");
  static constexpr const auto& kExp = kExpF64;
};

template <typename V>
using FormatOf = Format<Element<V>>;

template <typename V>
SGTC_INLINE V infinity() {
  return splat<V>(FormatOf<V>::kInfinity);
}

template <typename V>
SGTC_INLINE V not_a_number() {
  return splat<V>(FormatOf<V>::kNaN);
}

/// The larger one; `a` where one of them is NaN.
template <typename V>
SGTC_INLINE V at_least(V a, Element<V> bound) {
  return a < splat<V>(bound) ? splat<V>(bound) : a;
}

template <typename V>
SGTC_INLINE V at_most(V a, Element<V> bound) {
  return a > splat<V>(bound) ? splat<V>(bound) : a;
}

/// A number that is an integer in two forms.
template <typename V>
struct Rounded {
  V value;
  Unsigned<V> bits;  // two's complement
};

/// x rounded to the nearest integer; |x| < 2^(mantissa bits - 1).
template <typename V>
SGTC_INLINE Rounded<V> round_to_integer(V x) {
  const V magic = splat<V>(FormatOf<V>::kRound);
  const V shifted = x + magic;
  return {shifted - magic, bit_cast<Unsigned<V>>(shifted) - bit_cast<Unsigned<V>>(magic)};
}

template <typename V>
SGTC_INLINE V from_integer(Unsigned<V> bits) {
  const V magic = splat<V>(FormatOf<V>::kRound);
  return bit_cast<V>(bits + bit_cast<Unsigned<V>>(magic)) - magic;
}

/// x * 2^n with one rounding for normal x; n down to twice the least exponent.
template <typename V>
SGTC_INLINE V scale_by_power(V x, Unsigned<V> n) {
  using F = FormatOf<V>;
  const Unsigned<V> half = bit_cast<Unsigned<V>>(bit_cast<Int<V>>(n) >> 1);
  const V first = bit_cast<V>((half + F::kBias) << F::kMantissaBits);
  const V second = bit_cast<V>((n - half + F::kBias) << F::kMantissaBits);
  return x * first * second;
}

/// exp(r) - 1 and n with exp(x + extra) = exp(r) 2^n; x in [kExpLow, kExpHigh], extra tiny.
template <typename V>
struct ExpParts {
  V tail;
  Unsigned<V> power;
};

template <typename V>
SGTC_INLINE ExpParts<V> exp_parts(V x, V extra) {
  using F = FormatOf<V>;
  const Rounded<V> n = round_to_integer(x * F::kLog2E);
  V r = fma(n.value, splat<V>(-F::kLn2High), x);
  r = fma(n.value, splat<V>(-F::kLn2Low), r) + extra;
  return {fma(r * r, polynomial(r, F::kExp), r), n.bits};
}

template <typename V>
SGTC_INLINE V exp(V x, V extra) {
  using F = FormatOf<V>;
  const ExpParts<V> parts = exp_parts(at_most(at_least(x, F::kExpLow), F::kExpHigh), extra);
  return scale_by_power(parts.tail + 1, parts.power);
}

template <typename V>
SGTC_INLINE V exp(V x) {
  return exp(x, V{});
}

/// x = significand * 2^exponent with the significand in [sqrt(1/2), sqrt(2)); x > 0 and finite.
template <typename V>
struct Split {
  V significand;
  V exponent;
};

template <typename V>
SGTC_INLINE Split<V> split(V x) {
  using F = FormatOf<V>;
  const auto tiny = x < splat<V>(F::kSmallestNormal);
  const Element<V> shift = F::kMantissaBits + 1;
  const Element<V> factor = static_cast<Element<V>>(int64_t{1} << (F::kMantissaBits + 1));
  const Unsigned<V> bits = bit_cast<Unsigned<V>>(tiny ? x * factor : x);
  const Int<V> k = bit_cast<Int<V>>(bits - F::kSqrtHalfBits) >> F::kMantissaBits;
  const Unsigned<V> power = bit_cast<Unsigned<V>>(k);
  const V exponent = from_integer<V>(power);
  return {bit_cast<V>(bits - (power << F::kMantissaBits)), tiny ? exponent - shift : exponent};
}

/// `value` where x is positive and finite, else what log(x) is.
template <typename V>
SGTC_INLINE V log_or_special(V x, V value) {
  value = x == infinity<V>() ? x : value;
  value = x == V{} ? -infinity<V>() : value;
  return x < V{} ? not_a_number<V>() : (x != x ? x : value);
}

/// 1 / (1 + exp(-x)); exp(-|x|) keeps both ends from overflowing.
template <typename V>
SGTC_INLINE V sigmoid(V x) {
  const V e = exp(-absolute(x));
  return (x < V{} ? e : splat<V>(1)) / (e + 1);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
