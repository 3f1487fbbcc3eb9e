// Vocabulary of the written kernels: freestanding C++ for clang, without intrinsics, so that one
// text serves every CPU level and every vector width.
//
// Kernels are compiled for x86-64-v3 to LLVM bitcode and specialised when a model is compiled: the
// compiler sets the CPU of all functions alike, passes shapes as constants and inlines everything.
// The option -mavx512f is there for the calling convention alone: with it `V16f` is passed as
// <16 x float> in the bitcode. SGTC_KERNELS_BEGIN takes the instructions back, so every function of
// a kernel source or header stands between SGTC_KERNELS_BEGIN and SGTC_KERNELS_END. For GPUs, whose
// threads use the same headers on scalars, both are empty.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
#define SGTC_KERNELS_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"no-avx512f\"))), apply_to = function)")
#define SGTC_KERNELS_END _Pragma("clang attribute pop")
#else
#define SGTC_KERNELS_BEGIN
#define SGTC_KERNELS_END
#endif
#define SGTC_INLINE inline __attribute__((always_inline))
#define SGTC_EXPORT extern "C" __attribute__((visibility("default")))

namespace sgtc::kernels {

inline constexpr int64_t kLanes = 16;

typedef float V16f __attribute__((vector_size(64)));
typedef double V16d __attribute__((vector_size(128)));
typedef int32_t V16i __attribute__((vector_size(64)));
typedef uint32_t V16u __attribute__((vector_size(64)));
typedef int64_t V16l __attribute__((vector_size(128)));
typedef uint64_t V16ul __attribute__((vector_size(128)));

/// The types that go with a vector (or scalar) of floating-point numbers: its element, integers of
/// the same width and the vectors of twice the width.
template <typename V>
struct Traits;

template <>
struct Traits<float> {
  using Element = float;
  using Int = int32_t;
  using Unsigned = uint32_t;
  using Double = double;
  using Long = int64_t;
  using UnsignedLong = uint64_t;
};

template <>
struct Traits<double> {
  using Element = double;
  using Int = int64_t;
  using Unsigned = uint64_t;
};

template <>
struct Traits<V16f> {
  using Element = float;
  using Int = V16i;
  using Unsigned = V16u;
  using Double = V16d;
  using Long = V16l;
  using UnsignedLong = V16ul;
};

template <>
struct Traits<V16d> {
  using Element = double;
  using Int = V16l;
  using Unsigned = V16ul;
};

template <typename V>
using Element = typename Traits<V>::Element;
template <typename V>
using Int = typename Traits<V>::Int;
template <typename V>
using Unsigned = typename Traits<V>::Unsigned;

}  // namespace sgtc::kernels

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// All lanes equal to `value`; subtracting zero keeps the sign of a zero.
template <typename V>
SGTC_INLINE V splat(Element<V> value) {
  return value - V{};
}

template <typename To, typename From>
SGTC_INLINE To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

/// Numeric conversion of all lanes.
template <typename To, typename From>
SGTC_INLINE To convert(From from) {
  if constexpr (sizeof(From) <= 8) {
    return static_cast<To>(from);
  } else {
    return __builtin_convertvector(from, To);
  }
}

template <typename V>
SGTC_INLINE V fma(V a, V b, V c) {
  return __builtin_elementwise_fma(a, b, c);
}
template <typename V>
SGTC_INLINE V fma(V a, V b, Element<V> c)
  requires(sizeof(V) > 8)
{
  return __builtin_elementwise_fma(a, b, splat<V>(c));
}
template <typename V>
SGTC_INLINE V fma(V a, Element<V> b, V c)
  requires(sizeof(V) > 8)
{
  return __builtin_elementwise_fma(a, splat<V>(b), c);
}
template <typename V>
SGTC_INLINE V fma(V a, Element<V> b, Element<V> c)
  requires(sizeof(V) > 8)
{
  return __builtin_elementwise_fma(a, splat<V>(b), splat<V>(c));
}

template <typename V>
SGTC_INLINE V absolute(V x) {
  return __builtin_elementwise_abs(x);
}

template <typename V>
SGTC_INLINE V square_root(V x) {
  return __builtin_elementwise_sqrt(x);
}

/// |magnitude| with the sign of `sign`.
template <typename V>
SGTC_INLINE V copy_sign(V magnitude, V sign) {
  return __builtin_elementwise_copysign(magnitude, sign);
}

/// c[0] + c[1] x + ... by Horner's rule with one rounding a step.
template <typename V, int N>
SGTC_INLINE V polynomial(V x, const Element<V> (&c)[N]) {
  V sum = splat<V>(c[N - 1]);
#pragma clang loop unroll(full)
  for (int i = N - 2; i >= 0; --i) sum = fma(sum, x, splat<V>(c[i]));
  return sum;
}

template <typename V>
SGTC_INLINE V load(const Element<V>* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <typename V>
SGTC_INLINE void store(Element<V>* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

/// The first `count` lanes from memory, the others zero.
template <typename V>
SGTC_INLINE V load_part(const Element<V>* from, int64_t count) {
  V value = {};
  for (int64_t i = 0; i < count; ++i) value[i] = from[i];
  return value;
}

template <typename V>
SGTC_INLINE void store_part(Element<V>* to, V value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = value[i];
}

SGTC_INLINE int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
SGTC_INLINE int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }
SGTC_INLINE int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace sgtc::kernels

SGTC_KERNELS_END
