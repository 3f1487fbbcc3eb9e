// Conversions between the 16-bit floating-point formats and float, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace sgtc {

/// IEEE binary16 to float; exact.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

/// The nearest IEEE binary16 of a double, rounded once; NaN becomes a quiet NaN.
inline uint16_t half_from_double(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 48) & 0x8000u);
  const double magnitude = std::bit_cast<double>(bits & 0x7fffffffffffffffu);
  if (magnitude != magnitude) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00u);
  // Adding a power of two whose unit in the last place is the wanted one rounds to nearest even.
  const double smallest_normal = 0x1p-14;
  const double scale =
      magnitude < smallest_normal
          ? smallest_normal
          : std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) & 0x7ff0000000000000u);
  const double magic = scale * 0x1p42;
  const double rounded = (magnitude + magic) - magic;
  if (rounded < smallest_normal) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(rounded * 0x1p24));
  }
  const uint64_t exact = std::bit_cast<uint64_t>(rounded);
  const auto exponent = static_cast<uint16_t>((exact >> 52) - 1023 + 15);
  const auto fraction = static_cast<uint16_t>((exact >> 42) & 0x3ffu);
  return static_cast<uint16_t>(sign | (exponent << 10) | fraction);
}

/// bfloat16 to float; exact.
inline float bfloat_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The nearest bfloat16 of a float; NaN becomes a quiet NaN.
inline uint16_t bfloat_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  const uint32_t to_even = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits + to_even) >> 16);
}

/// The nearest bfloat16 of a double, rounded once: the step through float rounds to odd.
inline uint16_t bfloat_from_double(double value) {
  float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool infinite = (bits & 0x7fffffffu) == 0x7f800000u;
  if (back != value && value == value && !infinite) {
    const bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    if (away) --bits;
    nearest = std::bit_cast<float>(bits | 1u);
  }
  return bfloat_from_float(nearest);
}

}  // namespace sgtc
