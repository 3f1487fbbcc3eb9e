// The gradient of attention. With P = exp(scores - maximum) / sum and delta = rowsum(dO * O):
//   dV = P^T dO,  dS = scale P * (dO V^T - delta),  dQ = dS K,  dK = dS^T Q.
//
// Two kinds of blocks, each writing its own rows: dQ of up to 48 queries, which walks over the
// keys, and dK and dV of up to 48 keys, which walks over all queries of all heads that share them.
// Both compute P anew, so the second product with the scores costs time but no memory and no
// atomics.
#include "attention/attention.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Operands and results. Statistics are of the type in which scores are computed.
template <typename T>
struct GradientTensors {
  const T* q;
  const T* k;
  const T* v;
  const T* output;
  const typename Scores<T>::E* maximum;
  const typename Scores<T>::E* sum;
  const T* doutput;
  const T* mask;
  T* dq;
  T* dk;
  T* dv;
};

template <typename T>
SGTC_INLINE typename Scores<T>::E delta_of_row(const AttentionShape& s, const GradientTensors<T>& g,
                                               int64_t row) {
  typename Scores<T>::E sum = 0;
  for (int64_t i = row * s.value_size; i < (row + 1) * s.value_size; ++i) {
    sum += widened(g.doutput[i]) * widened(g.output[i]);
  }
  return sum;
}

template <typename T>
SGTC_INLINE void store_rows(T* to, typename Scores<T>::Sums& sums, int64_t rows, int64_t stride,
                            int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      to[row * stride + column] = narrowed<T>(sums.vector(row, column)[column % kLanes]);
    }
  }
}

/// What is known of the queries of a block.
template <typename E>
struct QueryStatistics {
  alignas(64) E maximum[kScoreColumns];
  alignas(64) E inverse_sum[kScoreColumns];
  alignas(64) E delta[kScoreColumns];

  template <typename T>
  SGTC_INLINE void read(const AttentionShape& s, const GradientTensors<T>& g, int64_t row,
                        int64_t count) {
    for (int64_t i = 0; i < kScoreColumns; ++i) {
      maximum[i] = i < count ? g.maximum[row + i] : E{};
      inverse_sum[i] = i < count ? 1 / g.sum[row + i] : E{};
      delta[i] = i < count ? delta_of_row(s, g, row + i) : E{};
    }
  }
};

/// 16 products of queries and keys become weights, products of dO and v gradients of the products.
template <typename V, typename T>
SGTC_INLINE void differentiate(Element<V>* weight, Element<V>* gradient, const Head<T>& head,
                               Place first, Place step, int64_t lanes, V maximum, V inverse_sum,
                               V delta) {
  const V scores = head.scores(load<V>(weight), first, step, lanes);
  const V p = exp(scores - maximum) * inverse_sum;
  store<V>(weight, p);
  store<V>(gradient, p * (load<V>(gradient) - delta) * static_cast<Element<V>>(head.s.scale));
}

/// Columns `first` … `first + width` of dq for queries `begin` … `begin + rows` of a head.
template <typename T>
SGTC_INLINE void query_gradient(const GradientTensors<T>& g, const Head<T>& head, int64_t begin,
                                int64_t rows, int64_t first, int64_t width) {
  using E = typename Scores<T>::E;
  using V = typename Scores<T>::V;
  const AttentionShape& s = head.s;
  typename Scores<T>::Matrix weights, gradients;
  typename Scores<T>::Sums sums;
  sums.clear();
  QueryStatistics<E> known;
  const int64_t query = head.query_row + begin;
  known.read(s, g, query, rows);
  const int64_t keys = s.causal != 0 ? minimum(s.keys, begin + rows) : s.keys;
  for (int64_t key = 0; key < keys; key += kScoreColumns) {
    const int64_t count = minimum(kScoreColumns, keys - key);
    const int64_t key_row = head.key_row + key;
    Scores<T>::multiply_rows(weights, g.q + query * s.key_size, rows, g.k + key_row * s.key_size,
                             count, s.key_size);
    Scores<T>::multiply_rows(gradients, g.doutput + query * s.value_size, rows,
                             g.v + key_row * s.value_size, count, s.value_size);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < count; i += kLanes) {
        differentiate<V>(weights.vector(row, i), gradients.vector(row, i), head,
                         {begin + row, key + i}, {0, 1}, count - i, splat<V>(known.maximum[row]),
                         splat<V>(known.inverse_sum[row]), splat<V>(known.delta[row]));
      }
    }
    Scores<T>::add_product(sums, gradients, rows, count, g.k + key_row * s.key_size + first,
                           s.key_size, width);
  }
  store_rows<T>(g.dq + query * s.key_size + first, sums, rows, s.key_size, width);
}

/// Adds what one head's queries give to dk and dv of keys `begin` … `begin + rows`: their columns
/// from `first` on.
template <typename T>
SGTC_INLINE void add_head(const GradientTensors<T>& g, const Head<T>& head, int64_t begin,
                          int64_t rows, int64_t first, int64_t key_width, int64_t value_width,
                          typename Scores<T>::Sums& dk, typename Scores<T>::Sums& dv) {
  using E = typename Scores<T>::E;
  using V = typename Scores<T>::V;
  const AttentionShape& s = head.s;
  typename Scores<T>::Matrix weights, gradients;
  QueryStatistics<E> known;
  const int64_t key_row = head.key_row + begin;
  const int64_t earliest = s.causal != 0 ? begin / kScoreColumns * kScoreColumns : 0;
  for (int64_t query = earliest; query < s.queries; query += kScoreColumns) {
    const int64_t count = minimum(kScoreColumns, s.queries - query);
    const int64_t query_row = head.query_row + query;
    known.read(s, g, query_row, count);
    Scores<T>::multiply_rows(weights, g.k + key_row * s.key_size, rows,
                             g.q + query_row * s.key_size, count, s.key_size);
    Scores<T>::multiply_rows(gradients, g.v + key_row * s.value_size, rows,
                             g.doutput + query_row * s.value_size, count, s.value_size);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < count; i += kLanes) {
        differentiate<V>(weights.vector(row, i), gradients.vector(row, i), head,
                         {query + i, begin + row}, {1, 0}, count - i, load<V>(known.maximum + i),
                         load<V>(known.inverse_sum + i), load<V>(known.delta + i));
      }
    }
    Scores<T>::add_product(dv, weights, rows, count, g.doutput + query_row * s.value_size + first,
                           s.value_size, value_width);
    Scores<T>::add_product(dk, gradients, rows, count, g.q + query_row * s.key_size + first,
                           s.key_size, key_width);
  }
}

template <typename T>
SGTC_INLINE void key_gradients(const AttentionShape& s, const GradientTensors<T>& g, int64_t batch,
                               int64_t key_head, int64_t begin, int64_t rows, int64_t first) {
  typename Scores<T>::Sums dk, dv;
  dk.clear();
  dv.clear();
  const int64_t key_width = maximum(0, minimum(kValueColumns, s.key_size - first));
  const int64_t value_width = maximum(0, minimum(kValueColumns, s.value_size - first));
  const int64_t shared = s.heads / s.key_heads;
  for (int64_t head = key_head * shared; head < (key_head + 1) * shared; ++head) {
    add_head(g, Head<T>::at(s, g.mask, batch, head), begin, rows, first, key_width, value_width, dk,
             dv);
  }
  const int64_t row = (batch * s.key_heads + key_head) * s.keys + begin;
  store_rows<T>(g.dk + row * s.key_size + first, dk, rows, s.key_size, key_width);
  store_rows<T>(g.dv + row * s.value_size + first, dv, rows, s.value_size, value_width);
}

template <typename T>
SGTC_INLINE GradientTensors<T> tensors_of(const AttentionShape& s, void* const* tensors) {
  void* const* results = tensors + 7 + s.has_mask;
  return {static_cast<const T*>(tensors[0]),
          static_cast<const T*>(tensors[1]),
          static_cast<const T*>(tensors[2]),
          static_cast<const T*>(tensors[3]),
          static_cast<const typename Scores<T>::E*>(tensors[4]),
          static_cast<const typename Scores<T>::E*>(tensors[5]),
          static_cast<const T*>(tensors[6]),
          static_cast<const T*>(tensors[7]),
          static_cast<T*>(results[0]),
          static_cast<T*>(results[1]),
          static_cast<T*>(results[2])};
}

template <typename T>
SGTC_INLINE void attention_grad(const AttentionShape* shape, void* const* tensors, int64_t begin,
                                int64_t end) {
  const AttentionShape& s = *shape;
  const GradientTensors<T> g = tensors_of<T>(s, tensors);
  const int64_t query_blocks = ceil_divide(s.queries, s.block_rows);
  const int64_t key_blocks = ceil_divide(s.keys, s.block_rows);
  const int64_t of_queries = s.batch * s.heads * query_blocks;
  const int64_t last = minimum(end, of_queries + s.batch * s.key_heads * key_blocks);
  for (int64_t index = begin; index < last; ++index) {
    if (index < of_queries) {
      const int64_t row = index % query_blocks * s.block_rows;
      const int64_t head = index / query_blocks;
      for (int64_t first = 0; first < s.key_size; first += kValueColumns) {
        query_gradient(g, Head<T>::at(s, g.mask, head / s.heads, head % s.heads), row,
                       minimum(s.block_rows, s.queries - row), first,
                       minimum(kValueColumns, s.key_size - first));
      }
    } else {
      const int64_t block = index - of_queries;
      const int64_t row = block % key_blocks * s.block_rows;
      const int64_t head = block / key_blocks;
      for (int64_t first = 0; first < maximum(s.key_size, s.value_size); first += kValueColumns) {
        key_gradients(s, g, head / s.key_heads, head % s.key_heads, row,
                      minimum(s.block_rows, s.keys - row), first);
      }
    }
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_ATTENTION_GRAD(name, type)                                                          \
  SGTC_EXPORT void sgtc_attention_grad_##name(const sgtc::kernels::AttentionShape* shape,        \
                                              void* const*, void* const* tensors, int64_t begin, \
                                              int64_t end) {                                     \
    sgtc::kernels::attention_grad<type>(shape, tensors, begin, end);                             \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION_GRAD)

SGTC_KERNELS_END
