// Element types of tensors in memory and the types in which kernels compute with them.
#pragma once

#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// bfloat16 as it lies in memory.
struct BFloat16 {
  uint16_t bits;
};

/// The type in which elements of type T are added and multiplied.
template <typename T>
struct Arithmetic {
  using Type = T;
};
template <>
struct Arithmetic<_Float16> {
  using Type = float;
};
template <>
struct Arithmetic<BFloat16> {
  using Type = float;
};
template <typename T>
using ArithmeticOf = typename Arithmetic<T>::Type;

template <typename T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;
template <>
inline constexpr bool kIsFloat<_Float16> = true;
template <>
inline constexpr bool kIsFloat<BFloat16> = true;

template <typename T>
SGTC_INLINE ArithmeticOf<T> widened(T value) {
  return static_cast<ArithmeticOf<T>>(value);
}
template <>
SGTC_INLINE float widened<BFloat16>(BFloat16 value) {
  return bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// `value` rounded to T: to nearest, ties to even; NaN stays NaN.
template <typename T, typename A>
SGTC_INLINE T narrowed(A value) {
  if constexpr (sizeof(T) == 2 && !__is_same(T, _Float16) && kIsFloat<T>) {
    const uint32_t bits = bit_cast<uint32_t>(static_cast<float>(value));
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return {static_cast<uint16_t>(value != value ? (bits >> 16 | 0x40) : rounded)};
  } else if constexpr (__is_same(T, _Float16)) {
    return static_cast<T>(static_cast<float>(value));  // from double it would be a library call
  } else {
    return static_cast<T>(value);
  }
}

/// Sums and products of integers wrap.
template <typename A>
SGTC_INLINE A add_elements(A a, A b) {
  if constexpr (kIsFloat<A>) {
    return a + b;
  } else {
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}

template <typename A>
SGTC_INLINE A multiply_elements(A a, A b) {
  if constexpr (kIsFloat<A>) {
    return a * b;
  } else {
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}

/// Whether `a` comes strictly before `b` in descending order; NaN is the greatest.
template <typename A>
SGTC_INLINE bool is_greater(A a, A b) {
  return b == b && (a != a || a > b);
}

/// max and min are NaN if either is.
template <typename A>
SGTC_INLINE A larger(A a, A b) {
  return a != a ? a : (b != b ? b : (a >= b ? a : b));
}
template <typename A>
SGTC_INLINE A smaller(A a, A b) {
  return a != a ? a : (b != b ? b : (a <= b ? a : b));
}

}  // namespace sgtc::kernels

// One instance of a kernel per element type: SGTC_FOR_EACH_FLOAT(X) is X(name, C++ type)…
#define SGTC_FOR_EACH_FLOAT(X) \
  X(f16, _Float16)             \
  X(bf16, sgtc::kernels::BFloat16) X(f32, float) X(f64, double)
#define SGTC_FOR_EACH_INTEGER(X) \
  X(i8, int8_t)                  \
  X(i16, int16_t)                \
  X(i32, int32_t) X(i64, int64_t) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define SGTC_FOR_EACH_NUMBER(X) SGTC_FOR_EACH_FLOAT(X) SGTC_FOR_EACH_INTEGER(X)

SGTC_KERNELS_END
