// Packing of lines that are contiguous along the depth: 8 x 8 transposes in registers.
#pragma once

#include "element.h"
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

/// place(k)[i] = from[i * stride + k] for Lines lines (at most 8).
template <int64_t Lines, typename Place>
SGTC_INLINE void transpose_strip(const float* from, int64_t stride, int64_t depth, Place place) {
  // What is left of less than a square: some elements alone cost less than another square.
  const int64_t end = depth < 8 || depth % 8 <= 2 ? depth / 8 * 8 : depth;
  for (int64_t k = 0; k < end; k += 8) {
    k = minimum(k, end - 8);  // the last square may overlap the one before
    V8f rows[8] = {};
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < Lines; ++i) {
      __builtin_memcpy(&rows[i], from + i * stride + k, sizeof(V8f));
    }
    transpose(rows);
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < 8; ++j) {
      __builtin_memcpy(place(k + j), &rows[j], Lines * sizeof(float));
    }
  }
#pragma clang loop vectorize(disable)
  for (int64_t k = end; k < depth; ++k) {
    float* to = place(k);
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < Lines; ++i) to[i] = from[i * stride + k];
  }
}

/// to[k * Width + i] = from[i * stride + k] for Lines lines (at most 8).
template <int64_t Width, int64_t Lines>
SGTC_INLINE void pack_strip(float* to, const float* from, int64_t stride, int64_t depth) {
  transpose_strip<Lines>(from, stride, depth,
                         [=](int64_t k) __attribute__((always_inline)) { return to + k * Width; });
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

/// place(k)[i] = line i of `lines`, element k of `depth`; lines are `stride` apart.
template <typename T, typename Place>
SGTC_INLINE void transpose_lines(const T* from, int64_t stride, int64_t lines, int64_t depth,
                                 Place place) {
  if constexpr (__is_same(T, float)) {
    const int64_t whole = lines / 8 * 8;
    const auto from_line = [&](int64_t line) __attribute__((always_inline)) {
      return [=](int64_t k) __attribute__((always_inline)) { return place(k) + line; };
    };
    for (int64_t line = 0; line < whole; line += 8) {
      transpose_strip<8>(from + line * stride, stride, depth, from_line(line));
    }
    const float* rest = from + whole * stride;
    switch (lines % 8) {
      case 1:
        return transpose_strip<1>(rest, stride, depth, from_line(whole));
      case 2:
        return transpose_strip<2>(rest, stride, depth, from_line(whole));
      case 3:
        return transpose_strip<3>(rest, stride, depth, from_line(whole));
      case 4:
        return transpose_strip<4>(rest, stride, depth, from_line(whole));
      case 5:
        return transpose_strip<5>(rest, stride, depth, from_line(whole));
      case 6:
        return transpose_strip<6>(rest, stride, depth, from_line(whole));
      case 7:
        return transpose_strip<7>(rest, stride, depth, from_line(whole));
      default:
        return;
    }
  } else {
    for (int64_t k = 0; k < depth; ++k) {
      auto* to = place(k);
      for (int64_t i = 0; i < lines; ++i) to[i] = widened(from[i * stride + k]);
    }
  }
}

/// across[i][j] = line(j)[i] for 16 lines of 16 elements.
template <typename V, typename Line>
SGTC_INLINE void transpose_square(V (&across)[kLanes], Line line) {
  if constexpr (__is_same(V, V16f)) {
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half) {
      V8f parts[2][8];
#pragma clang loop unroll(full)
      for (int part = 0; part < 2; ++part) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 8; ++i) {
          __builtin_memcpy(&parts[part][i], line(part * 8 + i) + half * 8, sizeof(V8f));
        }
        transpose(parts[part]);
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < 8; ++i) {
        across[half * 8 + i] = __builtin_shufflevector(parts[0][i], parts[1][i], 0, 1, 2, 3, 4, 5,
                                                       6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      }
    }
  } else {
    for (int64_t i = 0; i < kLanes; ++i) {
      for (int64_t j = 0; j < kLanes; ++j) across[i][j] = line(j)[i];
    }
  }
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
