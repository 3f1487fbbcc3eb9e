// What attention and its gradient share: tiles of scores and products with them.
//
// The matrix of scores (queries x keys) is never in memory. A block keeps a few rows of it, 64
// columns at a time, in the register-tile order of tile_product.h, and multiplies them right away.
// The idea is that of FlashAttention (Dao et al., 2022); the gradient recomputes the weights from
// the saved maximum and sum of each row instead of reading them. Two numbers and not their
// log-sum-exp: next to a maximum of -1e4 or -3e38, as masks of finite numbers give it, the
// logarithm of the sum would be lost.
#pragma once

#include "element.h"
#include "math/double.h"
#include "math/single.h"
#include "shapes.h"
#include "tile_product.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

inline constexpr int64_t kScoreColumns = 64;
inline constexpr int64_t kValueColumns = 128;  // head sizes above it take several passes
inline constexpr int64_t kScoreDepth = 128;

/// The register tile for elements of type T in memory.
template <typename T>
struct AttentionTile {
  using Type = NarrowTile;
};
template <>
struct AttentionTile<double> {
  using Type = DoubleTile;
};

template <typename T>
struct Scores {
  using Tile = typename AttentionTile<T>::Type;
  using E = typename Tile::E;
  using V = typename Tile::V;
  static constexpr int64_t kRowTiles = kAttentionRows / Tile::kRows;

  /// Up to kAttentionRows x kScoreColumns elements.
  struct Matrix {
    alignas(64) E elements[kAttentionRows * kScoreColumns];
    SGTC_INLINE E* vector(int64_t row, int64_t column) {
      return tile_at<Tile>(elements, kRowTiles, row / Tile::kRows, column / kLanes) +
             row % Tile::kRows * kLanes;
    }
  };

  /// Sums of up to kAttentionRows x kValueColumns elements.
  struct Sums {
    alignas(64) E elements[kAttentionRows * kValueColumns];
    SGTC_INLINE E* vector(int64_t row, int64_t column) {
      return tile_at<Tile>(elements, kRowTiles, row / Tile::kRows, column / kLanes) +
             row % Tile::kRows * kLanes;
    }
    SGTC_INLINE void clear() {
      for (int64_t i = 0; i < kAttentionRows * kValueColumns; ++i) elements[i] = 0;
    }
  };

  template <int64_t Width, typename From>
  SGTC_INLINE static void pack_rows(E* to, const From* from, int64_t stride, int64_t count,
                                    int64_t depth) {
    if constexpr (__is_same(From, float)) {
      pack_contiguous_lines<Width>(to, from, stride, count, depth);
    } else {
      pack_lines<Width>(to, count, depth,
                        [=](int64_t line, int64_t k) __attribute__((always_inline)) {
                          return static_cast<E>(widened(from[line * stride + k]));
                        });
    }
  }

  /// result = x y^T for row-major x[rows, depth] and y[columns, depth]. Rows and columns beyond
  /// them up to the next tile become zero, those farther out keep what they had.
  static void multiply_rows(Matrix& result, const T* x, int64_t rows, const T* y, int64_t columns,
                            int64_t depth) {
    alignas(64) E a[kAttentionRows * kScoreDepth];
    alignas(64) E b[kScoreColumns * kScoreDepth];
    int64_t begin = 0;
    do {
      const int64_t slice = minimum(kScoreDepth, depth - begin);
      pack_rows<Tile::kRows>(a, x + begin, depth, rows, slice);
      pack_rows<Tile::kColumns>(b, y + begin, depth, columns, slice);
      for (int64_t j = 0; j < ceil_divide(columns, kLanes); ++j) {
        for (int64_t i = 0; i < ceil_divide(rows, Tile::kRows); ++i) {
          multiply_panels<Tile>(a + i * Tile::kRows * slice, b + j * kLanes * slice,
                                tile_at<Tile>(result.elements, kRowTiles, i, j), slice, begin == 0);
        }
      }
      begin += slice;
    } while (begin < depth);
  }

  /// sums += weights m for weights[rows, count] and m[count, width], rows of m `stride` apart.
  static void add_product(Sums& sums, Matrix& weights, int64_t rows, int64_t count, const T* m,
                          int64_t stride, int64_t width) {
    alignas(64) E a[kAttentionRows * kScoreColumns];
    alignas(64) E b[kValueColumns * kScoreColumns];
    for (int64_t i = 0; i < ceil_divide(rows, Tile::kRows); ++i) {
      for (int64_t k = 0; k < count; k += kLanes) {
        pack_rows<Tile::kRows>(a + (i * count + k) * Tile::kRows,
                               tile_at<Tile>(weights.elements, kRowTiles, i, k / kLanes), kLanes,
                               Tile::kRows, minimum(kLanes, count - k));
      }
    }
    pack_across<Tile::kColumns>(b, m, stride, width, count);
    for (int64_t j = 0; j < ceil_divide(width, kLanes); ++j) {
      for (int64_t i = 0; i < ceil_divide(rows, Tile::kRows); ++i) {
        multiply_panels<Tile>(a + i * Tile::kRows * count, b + j * kLanes * count,
                              tile_at<Tile>(sums.elements, kRowTiles, i, j), count, false);
      }
    }
  }
};

/// A query and a key of one head.
struct Place {
  int64_t query, key;
};

/// Where the rows of one head lie and which scores count.
template <typename T>
struct Head {
  const AttentionShape& s;
  const T* mask;      // of this batch and head; null without one
  int64_t query_row;  // first row of the head in [batch, heads, queries, …]
  int64_t key_row;    // first row of its keys in [batch, key heads, keys, …]

  SGTC_INLINE static Head at(const AttentionShape& s, const T* mask, int64_t batch, int64_t head) {
    const int64_t key_head = head / (s.heads / s.key_heads);
    const T* own =
        s.has_mask != 0 ? mask + batch * s.mask_strides[0] + head * s.mask_strides[1] : nullptr;
    return {s, own, (batch * s.heads + head) * s.queries,
            (batch * s.key_heads + key_head) * s.keys};
  }

  /// Scaled and masked scores from the products of one row of a tile: lane i is query
  /// first.query + i * step.query and key first.key + i * step.key. Lanes from `lanes` on and keys
  /// that are later than their query in a causal attention become -inf.
  template <typename V>
  SGTC_INLINE V scores(V products, Place first, Place step, int64_t lanes) const {
    using E = Element<V>;
    const V lowest = splat<V>(-Format<E>::kInfinity);
    Int<V> lane;
#pragma clang loop unroll(full)
    for (int32_t i = 0; i < kLanes; ++i) lane[i] = i;
    V values = products * static_cast<E>(s.scale);
    if (s.has_mask != 0) values += mask_values<V>(first, step, lanes);
    if (s.causal != 0) {
      // key > query exactly where (step.key - step.query) i > first.query - first.key.
      const Int<V> lead = lane * static_cast<int32_t>(step.key - step.query);
      values = lead > static_cast<int32_t>(first.query - first.key) ? lowest : values;
    }
    return lane < static_cast<int32_t>(lanes) ? values : lowest;
  }

 private:
  template <typename V>
  SGTC_INLINE V mask_values(Place first, Place step, int64_t lanes) const {
    const T* from = mask + first.query * s.mask_strides[2] + first.key * s.mask_strides[3];
    const int64_t stride = step.query * s.mask_strides[2] + step.key * s.mask_strides[3];
    V values = {};
    for (int64_t i = 0; i < minimum(lanes, kLanes); ++i) {
      values[i] = static_cast<Element<V>>(widened(from[i * stride]));
    }
    return values;
  }
};

/// The sum of all lanes, as a tree.
template <typename V>
SGTC_INLINE Element<V> sum_of_lanes(V values) {
  Element<V> parts[kLanes];
  __builtin_memcpy(parts, &values, sizeof(V));
#pragma clang loop unroll(full)
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  return parts[0];
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
