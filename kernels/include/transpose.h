// Packing of lines that are contiguous along the depth: 8 x 8 transposes in registers.
#pragma once

#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

typedef float V8f __attribute__((vector_size(32)));

/// rows[i][k] becomes rows[k][i].
SGTC_INLINE void transpose(V8f (&rows)[8]) {
  V8f pairs[8], quads[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 4) {
#pragma clang loop unroll(full)
    for (int j = 0; j < 2; ++j) {
      const V8f a = pairs[i + j], b = pairs[i + 2 + j];
      quads[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      quads[i + 2 * j + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
#pragma clang loop unroll(full)
  for (int k = 0; k < 4; ++k) {
    rows[k] = __builtin_shufflevector(quads[k], quads[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[k + 4] = __builtin_shufflevector(quads[k], quads[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// to[k * Width + i] = from[i * stride + k] for Lines lines (at most 8).
template <int64_t Width, int64_t Lines>
SGTC_INLINE void pack_strip(float* to, const float* from, int64_t stride, int64_t depth) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    V8f rows[8] = {};
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < Lines; ++i) {
      __builtin_memcpy(&rows[i], from + i * stride + k, sizeof(V8f));
    }
    transpose(rows);
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < 8; ++j) {
      __builtin_memcpy(to + (k + j) * Width, &rows[j], Lines * sizeof(float));
    }
  }
  for (; k < depth; ++k) {
    for (int64_t i = 0; i < Lines; ++i) to[k * Width + i] = from[i * stride + k];
  }
}

/// One full panel of Width lines.
template <int64_t Width>
SGTC_INLINE void pack_panel(float* to, const float* from, int64_t stride, int64_t depth) {
#pragma clang loop unroll(full)
  for (int64_t i = 0; i + 8 <= Width; i += 8) {
    pack_strip<Width, 8>(to + i, from + i * stride, stride, depth);
  }
  constexpr int64_t kRest = Width % 8;
  if constexpr (kRest != 0) {
    pack_strip<Width, kRest>(to + Width - kRest, from + (Width - kRest) * stride, stride, depth);
  }
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
