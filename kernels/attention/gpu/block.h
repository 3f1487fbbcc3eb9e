// What attention without tensor cores and its gradient share: products of tiles of 64 x 64 and the
// scores of 64 queries and 64 keys.
//
// The idea is that of attention/attention.h: scores never reach memory. Tiles are multiplied by
// gpu/simt_product.h; what is multiplied with values or other operands (weights, gradients of
// scores) passes through a tile in shared memory. Left out: keeping queries in shared memory
// between tiles of keys; they come from the L1 cache.
#pragma once

#include "gpu/launch.h"
#include "gpu/simt_product.h"
#include "math/double.h"
#include "math/single.h"
#include "shapes.h"

namespace sgtc::gpu {

template <typename E>
using AttentionTile = SimtTile<E, 16, 4>;
inline constexpr uint32_t kAttentionLines = kAttentionTileLines;
inline constexpr uint32_t kAttentionColumns = kAttentionTileColumns;
inline constexpr uint32_t kAttentionSlices = kAttentionColumns / kAttentionLines;  // tiles at once
inline constexpr uint32_t kThreadsOfRow = 4;
static_assert(kAttentionThreads == kThreadsOfRow * kAttentionLines);

/// The shared memory behind that of the products.
template <typename E>
struct AttentionMemory {
  static constexpr uint32_t kPitch = kAttentionLines + 8;
  E scores[kAttentionLines * kPitch];  // or what they became
  E rows[3][kAttentionLines];          // numbers of each row
};
static_assert(kSimtSharedBytes + sizeof(AttentionMemory<double>) <= kAttentionSharedBytes);

template <typename E>
SGTC_DEVICE SGTC_SHARED AttentionMemory<E>& attention_memory() {
  return *shared_memory<AttentionMemory<E>>(kSimtSharedBytes);
}

template <typename E>
using AttentionSums = typename AttentionTile<E>::Sums;

/// Calls visit(i, j, row, column) for the thread's elements of a tile.
template <typename E, typename Visit>
SGTC_DEVICE void for_each_sum(Visit visit) {
  const auto at = TilePosition<AttentionTile<E>>::of(thread_index());
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < AttentionTile<E>::kOwn; ++i) {
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < AttentionTile<E>::kOwn; ++j) visit(i, j, at.row + i, at.column + j);
  }
}

/// `count` rows of a row-major tensor as the lines of an operand; the last one stands in for those
/// that are missing.
template <typename T>
SGTC_DEVICE auto rows_of(const T* from, uint32_t stride, uint32_t count) {
  using E = SumTypeOf<T>;
  return Operand{false, [=](uint32_t line, uint32_t k) SGTC_LAMBDA {
                   const uint32_t row = line < count ? line : count - 1;
                   return static_cast<E>(widened(from[row * static_cast<uint64_t>(stride) + k]));
                 }};
}

/// `count` columns of a row-major tensor as the lines of an operand.
template <typename T>
SGTC_DEVICE auto columns_of(const T* from, uint32_t stride, uint32_t count) {
  using E = SumTypeOf<T>;
  return Operand{true, [=](uint32_t line, uint32_t k) SGTC_LAMBDA {
                   const uint32_t column = line < count ? line : count - 1;
                   return static_cast<E>(widened(from[k * static_cast<uint64_t>(stride) + column]));
                 }};
}

/// The tile of scores as an operand whose lines are its rows, or its columns.
template <typename E>
SGTC_DEVICE auto score_rows() {
  return Operand{false, [](uint32_t line, uint32_t k) SGTC_LAMBDA {
                   return attention_memory<E>().scores[line * AttentionMemory<E>::kPitch + k];
                 }};
}
template <typename E>
SGTC_DEVICE auto score_columns() {
  return Operand{true, [](uint32_t line, uint32_t k) SGTC_LAMBDA {
                   return attention_memory<E>().scores[k * AttentionMemory<E>::kPitch + line];
                 }};
}

/// Where the rows of a head lie and which scores count.
template <typename T>
struct HeadRows {
  using E = SumTypeOf<T>;
  const AttentionShape& s;
  const T* mask;      // of this batch and head; null without one
  int64_t query_row;  // first row of the head in [batch, heads, queries, …]
  int64_t key_row;    // first row of its keys in [batch, key heads, keys, …]

  SGTC_METHOD static HeadRows at(const AttentionShape& s, const void* mask, uint32_t batch,
                                 uint32_t head) {
    const uint32_t key_head = head / static_cast<uint32_t>(s.heads / s.key_heads);
    const T* own = s.has_mask != 0 ? static_cast<const T*>(mask) + batch * s.mask_strides[0] +
                                         head * s.mask_strides[1]
                                   : nullptr;
    return {s, own, (batch * s.heads + head) * s.queries,
            (batch * s.key_heads + key_head) * s.keys};
  }

  /// The score of a query and a key from their product; -inf where the query does not see the key.
  SGTC_METHOD E score(E product, uint32_t query, uint32_t key) const {
    const bool seen = key < s.keys && query < s.queries && (s.causal == 0 || key <= query);
    if (!seen) return -Format<E>::kInfinity;
    E value = product * static_cast<E>(s.scale);
    if (s.has_mask != 0) {
      value += static_cast<E>(widened(mask[query * s.mask_strides[2] + key * s.mask_strides[3]]));
    }
    return value;
  }

  /// How many keys some query of the tile that begins with `query` sees.
  SGTC_METHOD uint32_t seen_keys(uint32_t query) const {
    const auto keys = static_cast<uint32_t>(s.keys);
    const uint32_t end = minimum(query + kAttentionLines, s.queries);
    return s.causal != 0 && end < keys ? end : keys;
  }
};

SGTC_DEVICE uint32_t lines_from(uint32_t begin, int64_t size) {
  return static_cast<uint32_t>(minimum(kAttentionLines, size - begin));
}

/// Columns of a result, up to two tiles: sums += factor b over `depth`, for b's columns from
/// `first` on; the columns of a result end at `size`.
template <typename E, typename Factor, typename T>
SGTC_DEVICE void add_products(AttentionSums<E> (&sums)[kAttentionSlices], const Factor& factor,
                              const T* b, uint32_t size, uint32_t first, uint32_t depth) {
#pragma clang loop unroll(full)
  for (uint32_t slice = 0; slice < kAttentionSlices; ++slice) {
    const uint32_t column = first + slice * kAttentionLines;
    if (column >= size) continue;
    AttentionSums<E> more;
    multiply_tile<AttentionTile<E>>(more, factor, columns_of(b + column, size, size - column), 0,
                                    depth);
    for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t, uint32_t)
                        SGTC_LAMBDA { sums[slice][i][j] += more[i][j]; });
  }
}

template <typename E>
SGTC_DEVICE void clear(AttentionSums<E> (&sums)[kAttentionSlices]) {
#pragma clang loop unroll(full)
  for (uint32_t slice = 0; slice < kAttentionSlices; ++slice) {
    for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t, uint32_t)
                        SGTC_LAMBDA { sums[slice][i][j] = 0; });
  }
}

/// Stores `count` rows of a result with `size` columns, from column `first` on, after
/// of_row(row, sum).
template <typename E, typename T, typename OfRow>
SGTC_DEVICE void store_rows(T* to, const AttentionSums<E> (&sums)[kAttentionSlices], uint32_t count,
                            uint32_t size, uint32_t first, OfRow of_row) {
#pragma clang loop unroll(full)
  for (uint32_t slice = 0; slice < kAttentionSlices; ++slice) {
    for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t row, uint32_t column) SGTC_LAMBDA {
      const uint32_t at = first + slice * kAttentionLines + column;
      if (row >= count || at >= size) return;
      to[row * static_cast<uint64_t>(size) + at] = narrowed<T>(of_row(row, sums[slice][i][j]));
    });
  }
}

}  // namespace sgtc::gpu
