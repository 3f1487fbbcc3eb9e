// Attention: softmax(scale q k^T + mask) v with the maximum and sum of each row of scores.
//
// A block has up to 48 queries of one head and walks over the keys, 64 at a time, with a running
// maximum m and sum l of each row: when a maximum grows, what was summed shrinks by exp(old - new).
#include "attention/attention.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Running maximum and sum of the rows of a block.
template <typename E>
struct RowStatistics {
  E maximum[kAttentionRows];
  E sum[kAttentionRows];
};

/// Turns the products of query `t` and keys `begin` … `begin + count` into weights exp(score - m)
/// and returns the factor that earlier sums shrink by.
template <typename T, typename E = typename Scores<T>::E>
SGTC_INLINE E weigh_row(typename Scores<T>::Matrix& scores, const Head<T>& head,
                        RowStatistics<E>& statistics, int64_t row, int64_t t, int64_t begin,
                        int64_t count) {
  using V = typename Scores<T>::V;
  V largest = splat<V>(statistics.maximum[row]);
  for (int64_t column = 0; column < count; column += kLanes) {
    E* part = scores.vector(row, column);
    const V values = head.scores(load<V>(part), {t, begin + column}, {0, 1}, count - column);
    store<V>(part, values);
    largest = values > largest ? values : largest;
  }
  E maximum = largest[0];
#pragma clang loop unroll(full)
  for (int64_t i = 1; i < kLanes; ++i) maximum = largest[i] > maximum ? largest[i] : maximum;
  // A row that is all -inf so far has weights of zero, not of NaN.
  const E base = maximum == -Format<E>::kInfinity ? E{} : maximum;
  V sums = {};
  for (int64_t column = 0; column < count; column += kLanes) {
    E* part = scores.vector(row, column);
    const V weights = exp(load<V>(part) - base);
    store<V>(part, weights);
    sums += weights;
  }
  const E shrink = exp(statistics.maximum[row] - base);
  statistics.sum[row] = statistics.sum[row] * shrink + sum_of_lanes(sums);
  statistics.maximum[row] = maximum;
  return shrink;
}

/// Columns `first` … `first + width` of the output rows `begin` … `begin + rows` of one head.
template <typename T>
SGTC_INLINE void attend(const AttentionShape& s, const Head<T>& head, const T* q, const T* k,
                        const T* v, T* output, typename Scores<T>::E* maxima,
                        typename Scores<T>::E* totals, int64_t begin, int64_t rows, int64_t first,
                        int64_t width) {
  using E = typename Scores<T>::E;
  using V = typename Scores<T>::V;
  typename Scores<T>::Matrix scores;
  typename Scores<T>::Sums sums;
  RowStatistics<E> statistics;
  sums.clear();
  for (int64_t row = 0; row < rows; ++row) {
    statistics.maximum[row] = -Format<E>::kInfinity;
    statistics.sum[row] = 0;
  }
  const int64_t keys = s.causal != 0 ? minimum(s.keys, begin + rows) : s.keys;
  for (int64_t key = 0; key < keys; key += kScoreColumns) {
    const int64_t count = minimum(kScoreColumns, keys - key);
    Scores<T>::multiply_rows(scores, q + (head.query_row + begin) * s.key_size, rows,
                             k + (head.key_row + key) * s.key_size, count, s.key_size);
    for (int64_t row = 0; row < rows; ++row) {
      const E shrink = weigh_row<T>(scores, head, statistics, row, begin + row, key, count);
      for (int64_t column = 0; column < width; column += kLanes) {
        E* part = sums.vector(row, column);
        store<V>(part, load<V>(part) * shrink);
      }
    }
    Scores<T>::add_product(sums, scores, rows, count,
                           v + (head.key_row + key) * s.value_size + first, s.value_size, width);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = head.query_row + begin + row;
    const bool zeros = s.keys == 0 || (s.zero_empty != 0 && statistics.sum[row] == 0);
    const E total = zeros ? E{1} : statistics.sum[row];
    for (int64_t column = 0; column < width; ++column) {
      const E value = sums.vector(row, column)[column % kLanes] / total;
      output[at * s.value_size + first + column] = narrowed<T>(value);
    }
    if (first == 0) {
      maxima[at] = zeros ? E{} : statistics.maximum[row];
      totals[at] = total;
    }
  }
}

template <typename T>
SGTC_INLINE void attention(const AttentionShape* shape, void* const* tensors, int64_t begin,
                           int64_t end) {
  using E = typename Scores<T>::E;
  const AttentionShape& s = *shape;
  const int64_t query_blocks = ceil_divide(s.queries, s.block_rows);
  const int64_t last = minimum(end, s.batch * s.heads * query_blocks);
  void* const* results = tensors + 3 + s.has_mask;
  for (int64_t index = begin; index < last; ++index) {
    const int64_t first = index % query_blocks * s.block_rows;
    const int64_t head_index = index / query_blocks;
    const Head<T> head = Head<T>::at(s, static_cast<const T*>(tensors[3]), head_index / s.heads,
                                     head_index % s.heads);
    int64_t column = 0;
    do {
      attend<T>(s, head, static_cast<const T*>(tensors[0]), static_cast<const T*>(tensors[1]),
                static_cast<const T*>(tensors[2]), static_cast<T*>(results[0]),
                static_cast<E*>(results[1]), static_cast<E*>(results[2]), first,
                minimum(s.block_rows, s.queries - first), column,
                minimum(kValueColumns, s.value_size - column));
      column += kValueColumns;
    } while (column < s.value_size);
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_ATTENTION(name, type)                                                                 \
  SGTC_EXPORT void sgtc_attention_##name(const sgtc::kernels::AttentionShape* shape, void* const*, \
                                         void* const* tensors, int64_t begin, int64_t end) {       \
    sgtc::kernels::attention<type>(shape, tensors, begin, end);                                    \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION)

SGTC_KERNELS_END
