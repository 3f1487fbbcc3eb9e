// Attention: softmax(scale q k^T + mask) v with the maximum and sum of each row of scores.
//
// A block has up to 48 queries of one head and walks over the keys, 48 at a time, with a running
// maximum m and sum l of each row: when a maximum grows, what was summed shrinks by exp(old - new).
#include "attention/attention.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Running maximum and sum of the rows of a block, and what the last keys changed.
template <typename Tile>
struct RowStatistics {
  using E = typename Tile::E;
  using V = typename Tile::V;
  alignas(64) E maximum[kAttentionRows];
  alignas(64) E sum[kAttentionRows];
  alignas(64) E base[kAttentionRows];    // the maximum, or 0 for a row that is all -inf so far
  alignas(64) E shrink[kAttentionRows];  // of earlier sums

  SGTC_INLINE void clear() {
    for (int64_t i = 0; i < kAttentionRows; ++i) {
      maximum[i] = base[i] = -Format<E>::kInfinity;
      sum[i] = shrink[i] = 0;
    }
  }

  /// Takes the maxima of the rows from `base`.
  SGTC_INLINE void grow() {
    for (int64_t i = 0; i < kAttentionRows; i += kLanes) {
      const V old = load<V>(maximum + i), found = load<V>(base + i);
      const V grown = found > old ? found : old;
      const V finite = grown == -Format<E>::kInfinity ? V{} : grown;
      store<V>(maximum + i, grown);
      store<V>(base + i, finite);
      store<V>(shrink + i, exp(old - finite));
    }
  }
};

/// Turns the products of queries `query` … `query + rows` and keys `key` … `key + count` into
/// weights exp(score - m).
template <typename Tile>
SGTC_INLINE void weigh(ScoreBlock<Tile>& scores, const Head<Tile>& head,
                       RowStatistics<Tile>& statistics, int64_t query, int64_t rows, int64_t key,
                       int64_t count) {
  using V = typename Tile::V;
  const auto columns_of = [&](int64_t row) __attribute__((always_inline)) {
    return head.seen_by_tile(query + row / Tile::kRows * Tile::kRows, key, count);
  };
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t seen = head.seen(query + row, key, count);
    V largest = splat<V>(-Format<typename Tile::E>::kInfinity);
    for (int64_t column = 0; column < columns_of(row); column += kLanes) {
      auto* part = scores.row(row) + column;
      const V values = head.scores(load<V>(part), query + row, key + column, seen - column);
      store<V>(part, values);
      largest = values > largest ? values : largest;
    }
    statistics.base[row] = largest_lane(largest);
  }
  statistics.grow();
  for (int64_t row = 0; row < rows; ++row) {
    V sums = {};
    for (int64_t column = 0; column < columns_of(row); column += kLanes) {
      auto* part = scores.row(row) + column;
      const V weights = exp(load<V>(part) - statistics.base[row]);
      store<V>(part, weights);
      sums += weights;
    }
    statistics.sum[row] = statistics.sum[row] * statistics.shrink[row] + sum_of_lanes(sums);
  }
}

template <typename Tile>
SGTC_INLINE void shrink_rows(SumBlock<Tile>& sums, const RowStatistics<Tile>& statistics,
                             int64_t rows, int64_t width) {
  using V = typename Tile::V;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; column += kLanes) {
      auto* part = sums.row(row) + column;
      store<V>(part, load<V>(part) * statistics.shrink[row]);
    }
  }
}

template <typename Tile>
struct Tensors {
  using T = typename Tile::T;
  using E = typename Tile::E;
  const T *q, *k, *v, *mask;
  T* output;
  E *maximum, *sum;

  SGTC_INLINE Tensors(const AttentionShape& s, void* const* tensors)
      : q(static_cast<const T*>(tensors[0])),
        k(static_cast<const T*>(tensors[1])),
        v(static_cast<const T*>(tensors[2])),
        mask(static_cast<const T*>(tensors[3])),
        output(static_cast<T*>(tensors[3 + s.has_mask])),
        maximum(static_cast<E*>(tensors[4 + s.has_mask])),
        sum(static_cast<E*>(tensors[5 + s.has_mask])) {}
};

/// Divides by the sums of the rows and stores columns from `first` on.
template <typename Tile>
SGTC_INLINE void store_rows(const Tensors<Tile>& t, const Head<Tile>& head, SumBlock<Tile>& sums,
                            const RowStatistics<Tile>& statistics, int64_t query, int64_t rows,
                            int64_t first) {
  using E = typename Tile::E;
  using V = typename Tile::V;
  const AttentionShape& s = head.s;
  for (int64_t row = 0; row < rows; ++row) {
    auto* to = head.query_row(t.output, s.output, query + row);
    const bool zeros = s.keys == 0 || (s.zero_empty != 0 && statistics.sum[row] == 0);
    const E total = zeros ? E{1} : statistics.sum[row];
    for (int64_t i = first; i < minimum(first + kSlice, s.value_size); i += kLanes) {
      const V values = load<V>(sums.row(row) + i - first) / total;
      store_narrow<V>(to + i, values, minimum(kLanes, s.value_size - i));
    }
    if (first == 0) {
      *head.query_row(t.maximum, s.maximum, query + row) = zeros ? E{} : statistics.maximum[row];
      *head.query_row(t.sum, s.sum, query + row) = total;
    }
  }
}

/// Columns from `first` on of the output rows `query` … `query + rows` of one head.
template <typename Tile>
SGTC_INLINE void attend(const Tensors<Tile>& t, const Head<Tile>& head, int64_t query, int64_t rows,
                        int64_t first) {
  const AttentionShape& s = head.s;
  ScoreBlock<Tile> scores;
  SumBlock<Tile> sums;
  RowStatistics<Tile> statistics;
  RowBlock<Tile> q, v;
  ColumnBlock<Tile> k;
  if (s.keys == 0) sums.clear();
  statistics.clear();
  q.set(head.query_row(t.q, s.q, query), s.q.strides[2], rows, s.key_size);
  const int64_t keys = head.seen(query + rows - 1, 0, s.keys);
  for (int64_t key = 0; key < keys; key += kAttentionRows) {
    const int64_t count = minimum(kAttentionRows, keys - key);
    k.set(head.key_row(t.k, s.k, key), s.k.strides[2], count, s.key_size);
    v.set(head.key_row(t.v, s.v, key), s.v.strides[2], count, s.value_size);
    multiply_rows(scores, head, q, k, query, key);
    weigh(scores, head, statistics, query, rows, key, count);
    if (key > 0) shrink_rows(sums, statistics, rows, v.width(first));
    add_product(sums, head, scores, v, first, query, rows, key, key == 0);
  }
  store_rows(t, head, sums, statistics, query, rows, first);
}

template <typename Tile>
SGTC_INLINE void attention(const AttentionShape* shape, void* const* tensors, int64_t begin,
                           int64_t end) {
  const AttentionShape& s = *shape;
  const Tensors<Tile> t(s, tensors);
  const int64_t query_blocks = ceil_divide(s.queries, kAttentionRows);
  const int64_t last = minimum(end, s.batch * s.heads * query_blocks);
  for (int64_t index = begin; index < last; ++index) {
    const int64_t query = index % query_blocks * kAttentionRows;
    const int64_t head = index / query_blocks;
    int64_t first = 0;
    do {
      attend(t, Head<Tile>::at(s, t.mask, head / s.heads, head % s.heads), query,
             minimum(kAttentionRows, s.queries - query), first);
      first += kSlice;
    } while (first < s.value_size);
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_ATTENTION(name, type)                                                                 \
  SGTC_EXPORT void sgtc_attention_##name(const sgtc::kernels::AttentionShape* shape, void* const*, \
                                         void* const* tensors, int64_t begin, int64_t end) {       \
    using namespace sgtc::kernels;                                                                 \
    with_attention_tile<type>(*shape, [&](auto tile) __attribute__((always_inline)) {              \
      attention<decltype(tile)>(shape, tensors, begin, end);                                       \
    });                                                                                            \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION)

SGTC_KERNELS_END
