// The softmax of attention over tiles of scores in the accumulators of a warpgroup.
#pragma once

#include "hopper/tensor_core.h"

namespace sgtc::hopper {

inline constexpr float kLog2E = 1.44269504089f;

SGTC_DEVICE float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
SGTC_DEVICE float log2_approximate(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
SGTC_DEVICE float larger(float a, float b) {
  float result;
  asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
SGTC_DEVICE float of_lane_xor(float value, int mask) {
  float result;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(result) : "f"(value), "r"(mask));
  return result;
}
SGTC_DEVICE uint32_t pack_pair(float low, float high) {
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

/// Of a thread's two rows: the maximum and the sum of exp(score - maximum) so far (of the thread's
/// own columns), and the factor for what was summed before the last tile.
struct RowStatistics {
  float maximum[2] = {-__builtin_inff(), -__builtin_inff()};
  float sum[2] = {0, 0};
  float shrink[2] = {0, 0};
};

/// Scores of keys beyond `limit` of each row become -inf; `key` is the first column of the thread.
template <int Count>
SGTC_DEVICE void mask_scores(float (&scores)[Count], uint32_t key, const uint32_t (&limit)[2]) {
#pragma clang loop unroll(full)
  for (int i = 0; i < Count; ++i) {
    const uint32_t at = key + i / 4 * 8 + i % 2;
    if (at > limit[i / 2 % 2]) scores[i] = -__builtin_inff();
  }
}

/// Replaces scores by exp2(factor * (score - maximum)), and updates maximum and sum. `Masked`
/// scores may all be -inf, which then is no maximum, and so large that their product with the
/// factor is not finite.
template <bool Masked, int Count>
SGTC_DEVICE void weigh(float (&scores)[Count], RowStatistics& rows, float factor) {
  float base[2];
#pragma clang loop unroll(full)
  for (int row = 0; row < 2; ++row) {
    float even = scores[2 * row], odd = scores[2 * row + 1];
#pragma clang loop unroll(full)
    for (int i = 4; i < Count; i += 4) {
      even = larger(even, scores[i + 2 * row]);
      odd = larger(odd, scores[i + 2 * row + 1]);
    }
    float maximum = larger(even, odd);
    maximum = larger(maximum, of_lane_xor(maximum, 1));
    maximum = larger(maximum, of_lane_xor(maximum, 2));
    maximum = larger(maximum, rows.maximum[row]);
    base[row] = Masked && maximum == -__builtin_inff() ? 0 : maximum;
    rows.shrink[row] = exp2_approximate((rows.maximum[row] - base[row]) * factor);
    rows.maximum[row] = maximum;
    if (!Masked) base[row] *= -factor;
  }
  float sums[4] = {0, 0, 0, 0};
#pragma clang loop unroll(full)
  for (int i = 0; i < Count; ++i) {
    const float own = base[i / 2 % 2];
    scores[i] = exp2_approximate(Masked ? (scores[i] - own) * factor
                                        : __builtin_fmaf(scores[i], factor, own));
    sums[i % 4] += scores[i];
  }
#pragma clang loop unroll(full)
  for (int row = 0; row < 2; ++row) {
    rows.sum[row] =
        __builtin_fmaf(rows.sum[row], rows.shrink[row], sums[2 * row] + sums[2 * row + 1]);
  }
}

/// Multiplies the accumulators of a thread's rows.
template <int Count>
SGTC_DEVICE void scale_rows(float (&sums)[Count], float first, float second) {
#pragma clang loop unroll(full)
  for (int i = 0; i < Count; ++i) sums[i] *= i / 2 % 2 == 0 ? first : second;
}

/// Accumulators as the left operand of a product, in bfloat16.
template <int Count>
SGTC_DEVICE void pack_weights(const float (&weights)[Count], uint32_t (&packed)[Count / 2]) {
#pragma clang loop unroll(full)
  for (int i = 0; i < Count / 2; ++i) packed[i] = pack_pair(weights[2 * i], weights[2 * i + 1]);
}

}  // namespace sgtc::hopper
