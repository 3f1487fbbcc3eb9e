// Single-precision functions for GPUs, made of the instructions that approximate 2^x, 1/x and
// 1/sqrt(x) to a relative error of 2^-22 or so.
//
// The library's polynomials (single.h) take three to five times as many instructions, and a loop
// over 16-bit floats has only about fourteen per element and sweep before it is slower than memory.
// So every GPU uses these, in two forms:
// - by their plain name, for all arguments, within 4 units in the last place;
// - as approximate_NAME, where operands carry no more than the precision of 16-bit floats
//   (passes/relax_functions.h): within a relative error of 2^-15, subnormal results are zero.
// Infinities, NaN and the sign of zero are those of the exact functions in both. Both sides of a
// condition are computed first, so that there is a selection and no branch.
#pragma once

#include "math/elementary.h"

namespace sgtc::kernels::hardware {

SGTC_INLINE float exp2(float x) { return __nvvm_ex2_approx_ftz_f(x); }
SGTC_INLINE float reciprocal(float x) { return __nvvm_rcp_approx_ftz_f(x); }

/// a * b + c, bounded to [0, 1]; 0 for NaN.
SGTC_INLINE float saturated_fma(float a, float b, float c) {
  float result;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

/// 2^f * 2^n with f + n = x log2(e). n is an integer in [-126, 126], found by adding a number whose
/// last place is 1 and rounding down; its biased exponent is then in the low bits of the sum. The
/// product's rounding error is in f, which is small. Beyond the range of n, f vanishes or overflows
/// by itself; subnormal results come from the last product.
SGTC_INLINE float exp(float x) {
  constexpr float kRange = 252, kMagic = 0x1.8p23f + 1;
  constexpr float kLog2ELow = 0x1.4ae0cp-26f;
  const float fraction = saturated_fma(x, kLog2EF32 / kRange, 0.5f);
  const float shifted = __nvvm_fma_rm_f(fraction, kRange, kMagic);
  const float n = shifted - (kMagic + kRange / 2);
  const float f = fma(x, kLog2ELow, fma(x, kLog2EF32, -n));
  return exp2(f) * bit_cast<float>(bit_cast<uint32_t>(shifted) << 23);
}

SGTC_INLINE float approximate_exp(float x) { return exp2(x * kLog2EF32); }

SGTC_INLINE float sigmoid(float x) {
  const float e = exp(-absolute(x));
  return (x < 0 ? e : 1.0f) * reciprocal(e + 1);
}

SGTC_INLINE float approximate_sigmoid(float x) { return reciprocal(exp2(x * -kLog2EF32) + 1); }

/// 1 - 2 / (exp(2 x) + 1), whose relative error is small where |x| is not.
SGTC_INLINE float far_tanh(float x) {
  return fma(-2.0f, reciprocal(exp2(x * (2 * kLog2EF32)) + 1), 1.0f);
}

/// An odd polynomial below 0.63.
SGTC_INLINE float tanh(float x) {
  const float a = absolute(x);
  const float square = a * a;
  const float near = fma(a * square, polynomial(square, kTanhF32), a);
  const float far = far_tanh(a);
  return copy_sign(a < 0.63f ? near : far, x);
}

/// x (1 - x^2 / 3) below 0.1.
SGTC_INLINE float approximate_tanh(float x) {
  const float near = x * fma(x * x, -1.0f / 3, 1.0f);
  const float far = far_tanh(x);
  return absolute(x) < 0.1f ? near : far;
}

/// As single.h, with another exponential function.
SGTC_INLINE float erf(float x) {
  const float a = absolute(x);
  const float near = fma(a, polynomial(a * a, kErfF32), a);
  const float far = 1 - exp2(polynomial(at_most(a, 3.95f), kErfLogF32) * -kLog2EF32);
  return copy_sign(a < 0.9f ? near : far, x);
}

/// Zero where |b| > 2^126, and infinite where b is subnormal.
SGTC_INLINE float approximate_div(float a, float b) { return a * reciprocal(b); }
SGTC_INLINE float approximate_reciprocal(float x) { return reciprocal(x); }
SGTC_INLINE float approximate_sqrt(float x) { return __nvvm_sqrt_approx_ftz_f(x); }
SGTC_INLINE float approximate_rsqrt(float x) { return __nvvm_rsqrt_approx_ftz_f(x); }

}  // namespace sgtc::kernels::hardware
