// What attention and its gradient share: blocks of operands, tiles of scores and products with
// them.
//
// The matrix of scores (queries x keys) is never in memory. A block has 48 queries and walks over
// the keys, 48 at a time, so that scores, and what is multiplied with them, stay in the first-level
// cache. The idea is that of FlashAttention (Dao et al., 2022); the gradient recomputes the weights
// from the saved maximum and sum of each row instead of reading them. Two numbers and not their
// log-sum-exp: next to a maximum of -1e4 or -3e38, as masks of finite numbers give it, the
// logarithm of the sum would be lost.
//
// Products are small here, so packing both operands as tile_product.h does would cost a fifth of
// the time. Only keys and values that are needed across are transposed; all other operands are
// read in rows, from copies that are padded with zeros to whole tiles and converted to the type in
// which scores are computed. In causal attention, tiles that no query sees are left out.
#pragma once

#include "element.h"
#include "math/double.h"
#include "math/single.h"
#include "shapes.h"
#include "tile_product.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

inline constexpr int64_t kSlice = 128;  // columns of an operand that are held at a time
// Rows are an odd number of cache lines apart, since distances of a power of two meet in few sets.
inline constexpr int64_t kMostStride = kSlice + kLanes;

/// How an attention on elements of type T in memory is computed: Rows x 16 elements of type E are
/// one register tile.
template <typename T_, typename E_, int64_t Rows>
struct AttentionTile {
  using T = T_;
  using E = E_;
  using V = E __attribute__((vector_size(kLanes * sizeof(E_))));
  static constexpr int64_t kRows = Rows;
  static_assert(kAttentionRows % Rows == 0 && kAttentionRows % kLanes == 0);
};

/// Calls use(tile) with the tile for elements of type T: 12 accumulators for 16 registers of 256
/// bits, as for 32 of 512.
template <typename T, typename Use>
SGTC_INLINE void with_attention_tile(const AttentionShape& s, Use use) {
  if constexpr (__is_same(T, double)) {
    use(AttentionTile<T, double, 2>());
  } else if (s.wide_vectors != 0) {
    use(AttentionTile<T, float, 12>());
  } else {
    use(AttentionTile<T, float, 6>());
  }
}

SGTC_INLINE int64_t stride_of(int64_t columns) {
  return (ceil_divide(columns, kLanes) | 1) * kLanes;
}

/// `count` elements (at most 16), and zeros.
template <typename V, typename T>
SGTC_INLINE V load_wide(const T* from, int64_t count) {
  if constexpr (__is_same(T, Element<V>)) {
    if (count >= kLanes) return load<V>(from);
  }
  V values = {};
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<Element<V>>(widened(from[i]));
  return values;
}

/// Stores `count` elements (at most 16).
template <typename V, typename T>
SGTC_INLINE void store_narrow(T* to, V values, int64_t count) {
  if constexpr (__is_same(T, Element<V>)) {
    if (count >= kLanes) return store<V>(to, values);
  }
  for (int64_t i = 0; i < count; ++i) to[i] = narrowed<T>(values[i]);
}

/// How many of `size` columns a slice from `begin` on has.
SGTC_INLINE int64_t slice_width(int64_t size, int64_t begin) {
  return maximum(0, minimum(kSlice, size - begin));
}

/// Row `row` of a head of a tensor.
template <typename T>
SGTC_INLINE T* row_at(T* tensor, const HeadStrides& rows, int64_t batch, int64_t head,
                      int64_t row) {
  return tensor + rows.offset + batch * rows.strides[0] + head * rows.strides[1] +
         row * rows.strides[2];
}

/// Up to 48 rows of an operand with `size` columns, `distance` apart, 128 columns at a time.
template <typename Tile>
struct RowBlock {
  using E = typename Tile::E;
  using V = typename Tile::V;
  const typename Tile::T* from = nullptr;
  int64_t distance = 0, rows = 0, size = 0;
  int64_t held = -1;
  alignas(64) E elements[kAttentionRows * kMostStride];

  SGTC_INLINE void set(const typename Tile::T* source, int64_t apart, int64_t count,
                       int64_t columns) {
    from = source;
    distance = apart;
    rows = count;
    size = columns;
    held = -1;
  }
  SGTC_INLINE int64_t width(int64_t begin) const { return slice_width(size, begin); }
  SGTC_INLINE int64_t stride() const { return stride_of(minimum(kSlice, size)); }

  /// The columns from `begin` on, row by row, `stride()` apart, with zeros up to whole tiles.
  SGTC_INLINE const E* slice(int64_t begin) {
    if (held == begin) return elements;
    held = begin;
    for (int64_t row = 0; row < ceil_divide(rows, Tile::kRows) * Tile::kRows; ++row) {
      for (int64_t i = 0; i < width(begin); i += kLanes) {
        const int64_t count = row < rows ? minimum(kLanes, width(begin) - i) : 0;
        store<V>(elements + row * stride() + i,
                 load_wide<V>(from + row * distance + begin + i, count));
      }
    }
    return elements;
  }
};

/// The same transposed: element k of row i is at k * 48 + i.
template <typename Tile>
struct ColumnBlock {
  using E = typename Tile::E;
  const typename Tile::T* from = nullptr;
  int64_t distance = 0, rows = 0, size = 0;
  int64_t held = -1;
  alignas(64) E elements[kAttentionRows * kSlice];

  SGTC_INLINE void set(const typename Tile::T* source, int64_t apart, int64_t count,
                       int64_t columns) {
    from = source;
    distance = apart;
    rows = count;
    size = columns;
    held = -1;
  }

  SGTC_INLINE const E* slice(int64_t begin) {
    if (held == begin) return elements;
    held = begin;
    const int64_t depth = minimum(kSlice, size - begin);
    for (int64_t first = 0; first < rows; first += kLanes) {
      pack_lines_across(elements + first, from + first * distance + begin,
                        minimum(kLanes, rows - first), depth);
    }
    return elements;
  }

 private:
  SGTC_INLINE void pack_lines_across(E* to, const typename Tile::T* source, int64_t lines,
                                     int64_t depth) const {
    if constexpr (__is_same(typename Tile::T, float)) {
      if (lines == kLanes) {
        pack_strip<kAttentionRows, 8>(to, source, distance, depth);
        pack_strip<kAttentionRows, 8>(to + 8, source + 8 * distance, distance, depth);
        return;
      }
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t i = 0; i < kLanes; ++i) {
        to[k * kAttentionRows + i] =
            i < lines ? static_cast<E>(widened(source[i * distance + k])) : E{};
      }
    }
  }
};

/// Scores, weights or their gradients: 48 x 48, row-major.
template <typename Tile>
struct ScoreBlock {
  using E = typename Tile::E;
  alignas(64) E elements[kAttentionRows * kAttentionRows];
  SGTC_INLINE E* row(int64_t i) { return elements + i * kAttentionRows; }
};

/// Sums of 48 rows, up to 128 columns.
template <typename Tile>
struct SumBlock {
  using E = typename Tile::E;
  alignas(64) E elements[kAttentionRows * kMostStride];
  SGTC_INLINE E* row(int64_t i) { return elements + i * kMostStride; }
  SGTC_INLINE void clear() {
    for (int64_t i = 0; i < kAttentionRows * kMostStride; ++i) elements[i] = 0;
  }
};

/// A matrix with any strides.
template <typename E>
struct Strided {
  const E* elements;
  int64_t row, depth;
};

/// One register tile of c = (first ? 0 : c) + a b over depths `begin` … `end`.
template <typename Tile>
SGTC_INLINE void multiply_strided(Strided<typename Tile::E> a, const typename Tile::E* b,
                                  int64_t b_stride, typename Tile::E* c, int64_t c_stride,
                                  int64_t begin, int64_t end, bool first) {
  using V = typename Tile::V;
  V sums[Tile::kRows] = {};
  const typename Tile::E* factors = a.elements + begin * a.depth;
  const typename Tile::E* row = b + begin * b_stride;
#pragma clang loop unroll_count(4)
  for (int64_t k = begin; k < end; ++k) {
    const V values = load<V>(row);
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < Tile::kRows; ++i) {
      sums[i] = fma(splat<V>(factors[i * a.row]), values, sums[i]);
    }
    factors += a.depth;
    row += b_stride;
  }
#pragma clang loop unroll(full)
  for (int64_t i = 0; i < Tile::kRows; ++i) {
    typename Tile::E* to = c + i * c_stride;
    store<V>(to, first ? sums[i] : load<V>(to) + sums[i]);
  }
}

/// The largest lane; NaN only if all are.
template <typename V>
SGTC_INLINE Element<V> largest_lane(V x) {
  const auto larger = [](V a, V b) __attribute__((always_inline)) { return a > b ? a : b; };
  x = larger(x,
             __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  x = larger(x,
             __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  x = larger(x,
             __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  x = larger(x,
             __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  return x[0];
}

/// The sum of all lanes, as a tree.
template <typename V>
SGTC_INLINE Element<V> sum_of_lanes(V x) {
  x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return x[0];
}

/// Where the rows of one head lie and which scores count.
template <typename Tile>
struct Head {
  using T = typename Tile::T;
  using E = typename Tile::E;
  using V = typename Tile::V;
  const AttentionShape& s;
  const T* mask;  // of this batch and head; null without one
  int64_t batch, head, key_head;

  SGTC_INLINE static Head at(const AttentionShape& s, const T* mask, int64_t batch, int64_t head) {
    const T* own = s.has_mask != 0
                       ? mask + s.mask_offset + batch * s.mask_strides[0] + head * s.mask_strides[1]
                       : nullptr;
    return {s, own, batch, head, head / (s.heads / s.key_heads)};
  }

  /// A row of the head in a tensor of queries, or in one of keys.
  template <typename X>
  SGTC_INLINE X* query_row(X* tensor, const HeadStrides& rows, int64_t query) const {
    return row_at(tensor, rows, batch, head, query);
  }
  template <typename X>
  SGTC_INLINE X* key_row(X* tensor, const HeadStrides& rows, int64_t key) const {
    return row_at(tensor, rows, batch, key_head, key);
  }

  /// How many of the keys `key` … `key + count` the query sees.
  SGTC_INLINE int64_t seen(int64_t query, int64_t key, int64_t count) const {
    return s.causal != 0 ? maximum(0, minimum(count, query - key + 1)) : count;
  }

  /// How many of them some query of the tile of rows that starts with `query` sees.
  SGTC_INLINE int64_t seen_by_tile(int64_t query, int64_t key, int64_t count) const {
    return seen(query + Tile::kRows - 1, key, count);
  }

  /// Scaled and masked scores from 16 products of a query and keys; lanes from `lanes` on become
  /// -inf.
  SGTC_INLINE V scores(V products, int64_t query, int64_t key, int64_t lanes) const {
    V values = products * static_cast<E>(s.scale);
    if (s.has_mask != 0) values += mask_values(query, key, lanes);
    if (lanes >= kLanes) return values;
    Int<V> lane;
#pragma clang loop unroll(full)
    for (int32_t i = 0; i < kLanes; ++i) lane[i] = i;
    const int32_t end = static_cast<int32_t>(maximum(0, lanes));
    return lane < end ? values : splat<V>(-Format<E>::kInfinity);
  }

 private:
  SGTC_INLINE V mask_values(int64_t query, int64_t key, int64_t lanes) const {
    const int64_t stride = s.mask_strides[3];
    const T* from = mask + query * s.mask_strides[2] + key * stride;
    if (stride == 0) return splat<V>(static_cast<E>(widened(*from)));
    return load_wide<V>(from, minimum(lanes, kLanes));
  }
};

/// result = x y^T for the rows of two blocks, which are queries from `query` and keys from `key`
/// on; tiles that no query sees keep what they had.
template <typename Tile>
SGTC_INLINE void multiply_rows(ScoreBlock<Tile>& result, const Head<Tile>& head, RowBlock<Tile>& x,
                               ColumnBlock<Tile>& y, int64_t query, int64_t key) {
  int64_t begin = 0;
  do {
    const auto* a = x.slice(begin);
    const auto* b = y.slice(begin);
#pragma clang loop unroll(disable)
    for (int64_t i = 0; i < x.rows; i += Tile::kRows) {
      const int64_t columns = head.seen_by_tile(query + i, key, y.rows);
#pragma clang loop unroll(disable)
      for (int64_t j = 0; j < columns; j += kLanes) {
        multiply_strided<Tile>({a + i * x.stride(), x.stride(), 1}, b + j, kAttentionRows,
                               result.row(i) + j, kAttentionRows, 0, x.width(begin), begin == 0);
      }
    }
    begin += kSlice;
  } while (begin < x.size);
}

/// sums = (first ? 0 : sums) + weights m for columns `begin` … `begin + 128` of the keys' rows `m`.
template <typename Tile>
SGTC_INLINE void add_product(SumBlock<Tile>& sums, const Head<Tile>& head,
                             ScoreBlock<Tile>& weights, RowBlock<Tile>& m, int64_t begin,
                             int64_t query, int64_t rows, int64_t key, bool first) {
  const auto* b = m.slice(begin);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < rows; i += Tile::kRows) {
    const int64_t depth = head.seen_by_tile(query + i, key, m.rows);
#pragma clang loop unroll(disable)
    for (int64_t j = 0; j < m.width(begin); j += kLanes) {
      multiply_strided<Tile>({weights.row(i), kAttentionRows, 1}, b + j, m.stride(),
                             sums.row(i) + j, kMostStride, 0, depth, first);
    }
  }
}

/// sums = (first ? 0 : sums) + weights^T m for the queries' rows `m`.
template <typename Tile>
SGTC_INLINE void add_transposed_product(SumBlock<Tile>& sums, const Head<Tile>& head,
                                        ScoreBlock<Tile>& weights, RowBlock<Tile>& m, int64_t begin,
                                        int64_t query, int64_t key, int64_t keys, bool first) {
  const auto* b = m.slice(begin);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < keys; i += Tile::kRows) {
    const int64_t first_query =
        head.s.causal != 0 ? minimum(m.rows, maximum(0, key + i - query)) : 0;
#pragma clang loop unroll(disable)
    for (int64_t j = 0; j < m.width(begin); j += kLanes) {
      multiply_strided<Tile>({weights.elements + i, 1, kAttentionRows}, b + j, m.stride(),
                             sums.row(i) + j, kMostStride, first_query, m.rows, first);
    }
  }
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
