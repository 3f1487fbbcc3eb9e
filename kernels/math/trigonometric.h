// sin, cos and tan: reduction by multiples of pi/2 for arguments of any size, then polynomials.
//
// The reduction multiplies the integer significand by a window of the bits of 2/pi (Payne and
// Hanek). Bits of weight 4 and more fall out of the top of the integer product by wrapping, so its
// two leading bits are the quadrant and the rest is the fraction of a quadrant. The window leaves
// enough bits after the worst cancellation of the format (about 2^-30 for float, 2^-62 for double).
// Arguments below pi/4 are taken as they are.
#pragma once

#include "math/elementary.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// An angle in [-pi/4, pi/4] as high + low, and how many right angles were taken away.
template <typename D>
struct Reduced {
  D high;
  D low;
  Unsigned<D> quadrant;
};

/// Word `index` of 2/pi after one word of zeros, for each lane; index in [0, 8).
template <typename U>
SGTC_INLINE U two_over_pi_word(U index) {
  U word = {};
#pragma clang loop unroll(full)
  for (uint32_t i = 1; i < 8; ++i) word = index == U{} + i ? U{} + kTwoOverPi[i - 1] : word;
  return word;
}

/// 32 bits of 2/pi from bit `offset` on: two neighbouring words.
template <typename U>
SGTC_INLINE U two_over_pi_bits(U word, U next, U shift) {
  return shift == U{} ? word : (word << shift) | (next >> (32 - (shift == U{} ? U{} + 1 : shift)));
}

/// For |x| in single precision: V is float or a vector of it.
template <typename V, typename D = typename Traits<V>::Double>
SGTC_INLINE Reduced<D> reduce_single(V x) {
  using U = Unsigned<V>;
  using UL = typename Traits<V>::UnsignedLong;
  const V a = absolute(x);
  const U bits = bit_cast<U>(a);
  const U exponent = bits >> 23;
  const U offset = exponent > U{} + 120 ? exponent - 120 : U{};
  const U index = (offset & 255) >> 5;
  const U shift = offset & 31;
  const U w0 = two_over_pi_word<U>(index), w1 = two_over_pi_word<U>(index + 1);
  const U w2 = two_over_pi_word<U>(index + 2), w3 = two_over_pi_word<U>(index + 3);
  const UL m = convert<UL>((bits & 0x7fffff) | 0x800000);
  const UL product = (m * convert<UL>(two_over_pi_bits(w0, w1, shift)) << 32) +
                     m * convert<UL>(two_over_pi_bits(w1, w2, shift)) +
                     (m * convert<UL>(two_over_pi_bits(w2, w3, shift)) >> 32);
  const auto fraction = bit_cast<typename Traits<V>::Long>(product << 2);
  const D angle = convert<D>(fraction) * (0x1p-64 * kPiHalfF64High);
  const D wide = convert<D>(a);
  const auto small = wide < splat<D>(kPiQuarterF64High);
  const UL quadrant = (product + (uint64_t{1} << 61)) >> 62;
  return {small ? wide : angle, D{}, small ? UL{} : quadrant};
}

/// 64 bits of 2/pi from bit `offset` on, after two words of zeros.
SGTC_INLINE uint64_t two_over_pi_window(int64_t offset) {
  constexpr int64_t kWords = sizeof(kTwoOverPi) / sizeof(kTwoOverPi[0]);
  const int64_t first = (offset >> 5) - 2;
  const int shift = offset & 31;
  uint64_t words[3];
#pragma clang loop unroll(full)
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t at = first + i;
    words[i] = at < 0 || at >= kWords ? 0 : kTwoOverPi[at];
  }
  const uint64_t two = words[0] << 32 | words[1];
  return shift == 0 ? two : two << shift | words[2] >> (32 - shift);
}

/// For a finite |x| in double precision.
SGTC_INLINE Reduced<double> reduce_double(double x) {
  using Wide = unsigned __int128;
  const double a = absolute(x);
  if (!(a >= kPiQuarterF64High)) return {a, 0, 0};
  const uint64_t bits = bit_cast<uint64_t>(a);
  const uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
  // x = m 2^e; the bits of weight 4 and more are skipped.
  const int64_t offset = static_cast<int64_t>(bits >> 52) - 1075 - 2 + 64;
  const Wide product = (Wide{m * two_over_pi_window(offset)} << 64) +
                       Wide{m} * two_over_pi_window(offset + 64) +
                       (Wide{m} * two_over_pi_window(offset + 128) >> 64);
  const uint64_t quadrant = static_cast<uint64_t>((product + (Wide{1} << 125)) >> 126);
  const Wide fraction = product << 2;
  const bool negative = fraction >> 127 != 0;
  const Wide size = negative ? -fraction : fraction;
  const uint64_t upper = static_cast<uint64_t>(size >> 64);
  const int zeros =
      upper != 0 ? __builtin_clzll(upper) : 64 + __builtin_clzll(static_cast<uint64_t>(size) | 1);
  const Wide normal = size << zeros;
  // Two doubles of 53 bits each, then times pi/2 as a pair.
  const double scale = bit_cast<double>(uint64_t(1023 - zeros) << 52) * (negative ? -1 : 1);
  const double high = static_cast<double>(static_cast<uint64_t>(normal >> 75)) * 0x1p-53 * scale;
  const double low = static_cast<double>(static_cast<uint64_t>(normal >> 22) & 0x1fffffffffffff) *
                     0x1p-106 * scale;
  const double product_high = high * kPiHalfF64High;
  const double product_low =
      fma(high, kPiHalfF64High, -product_high) + fma(high, kPiHalfF64Low, low * kPiHalfF64High);
  return {product_high, product_low, quadrant};
}

template <typename D>
SGTC_INLINE D sin_of_reduced(D r, D low) {
  const D z = r * r;
  return r + fma(r * z, polynomial(z, kSinF64), low * (1 - z * 0.5));
}

template <typename D>
SGTC_INLINE D cos_of_reduced(D r, D low) {
  const D z = r * r;
  const D half = z * 0.5;
  const D head = 1 - half;
  return head + (((1 - head) - half) + fma(z * z, polynomial(z, kCosF64), -(r * low)));
}

/// sin of the reduced angle turned by `quadrant` right angles.
template <typename D>
SGTC_INLINE D sin_of_quadrant(Reduced<D> reduced, Unsigned<D> quadrant) {
  const D sine = sin_of_reduced(reduced.high, reduced.low);
  const D cosine = cos_of_reduced(reduced.high, reduced.low);
  const D value = (quadrant & 1) == Unsigned<D>{} ? sine : cosine;
  return (quadrant & 2) == Unsigned<D>{} ? value : -value;
}

template <typename D>
SGTC_INLINE D tan_of_reduced(Reduced<D> reduced) {
  const D sine = sin_of_reduced(reduced.high, reduced.low);
  const D cosine = cos_of_reduced(reduced.high, reduced.low);
  const auto even = (reduced.quadrant & 1) == Unsigned<D>{};
  return (even ? sine : -cosine) / (even ? cosine : sine);
}

/// NaN for infinities and NaN, else `value`.
template <typename V>
SGTC_INLINE V if_finite(V x, V value) {
  return absolute(x) < infinity<V>() ? value : not_a_number<V>();
}

/// The sign of an odd function: that of `value` turned where x is negative.
template <typename V>
SGTC_INLINE V odd_sign(V x, V value) {
  return copy_sign(splat<V>(1), x) < V{} ? -value : value;
}

SGTC_INLINE double sin_double(double x) {
  const Reduced<double> reduced = reduce_double(x);
  return if_finite(x, odd_sign(x, sin_of_quadrant(reduced, reduced.quadrant)));
}

SGTC_INLINE double cos_double(double x) {
  const Reduced<double> reduced = reduce_double(x);
  return if_finite(x, sin_of_quadrant(reduced, reduced.quadrant + 1));
}

SGTC_INLINE double tan_double(double x) {
  return if_finite(x, odd_sign(x, tan_of_reduced(reduce_double(x))));
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
