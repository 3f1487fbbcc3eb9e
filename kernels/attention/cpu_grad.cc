// The gradient of attention. With P = exp(scores - maximum) / sum and delta = rowsum(dO * O):
//   dV = P^T dO,  dS = scale P * (dO V^T - delta),  dQ = dS K,  dK = dS^T Q.
//
// P and dS of a block of 48 queries and 48 keys serve all three results, but dQ adds up over keys
// and dK and dV over queries. Two ways out, without atomics and the same bits for any split over
// threads:
// - Where there are enough heads, a block of work is a whole head of keys: it walks over all keys
//   and, for each, over the queries; dQ adds up in memory, which only this block writes.
// - Else, and for 16-bit types, in which dQ must not add up, there are two kinds of blocks: dQ of
//   48 queries, and dK and dV of 48 keys. Both compute P and dS, so 7 products instead of 5.
#include "attention/attention.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Operands and results. Statistics are of the type in which scores are computed.
template <typename Tile>
struct Tensors {
  using T = typename Tile::T;
  using E = typename Tile::E;
  const T *q, *k, *v, *output;
  const E *maximum, *sum;
  const T *doutput, *mask;
  T *dq, *dk, *dv;

  SGTC_INLINE Tensors(const AttentionShape& s, void* const* tensors)
      : q(static_cast<const T*>(tensors[0])),
        k(static_cast<const T*>(tensors[1])),
        v(static_cast<const T*>(tensors[2])),
        output(static_cast<const T*>(tensors[3])),
        maximum(static_cast<const E*>(tensors[4])),
        sum(static_cast<const E*>(tensors[5])),
        doutput(static_cast<const T*>(tensors[6])),
        mask(static_cast<const T*>(tensors[7])),
        dq(static_cast<T*>(tensors[7 + s.has_mask])),
        dk(static_cast<T*>(tensors[8 + s.has_mask])),
        dv(static_cast<T*>(tensors[9 + s.has_mask])) {}
};

/// A block of queries and a block of keys of one head, and what is computed from both.
template <typename Tile>
struct Pair {
  using E = typename Tile::E;
  using V = typename Tile::V;
  const Tensors<Tile>& t;
  const AttentionShape& s;
  int64_t query = 0, key = 0;
  RowBlock<Tile> q, doutput, k;
  ColumnBlock<Tile> keys, values;
  ScoreBlock<Tile> weights, gradients;

  SGTC_INLINE Pair(const Tensors<Tile>& tensors, const AttentionShape& shape)
      : t(tensors), s(shape) {}

  SGTC_INLINE void set_queries(const Head<Tile>& head, int64_t begin) {
    query = begin;
    const int64_t rows = minimum(kAttentionRows, s.queries - begin);
    q.set(head.query_row(t.q, s.q, begin), s.q.strides[2], rows, s.key_size);
    doutput.set(head.query_row(t.doutput, s.doutput, begin), s.doutput.strides[2], rows,
                s.value_size);
  }

  SGTC_INLINE void set_keys(const Head<Tile>& head, int64_t begin) {
    key = begin;
    const int64_t rows = minimum(kAttentionRows, s.keys - begin);
    k.set(head.key_row(t.k, s.k, begin), s.k.strides[2], rows, s.key_size);
    keys.set(k.from, k.distance, rows, s.key_size);
    values.set(head.key_row(t.v, s.v, begin), s.v.strides[2], rows, s.value_size);
  }

  /// Whether some query sees some key.
  SGTC_INLINE bool is_seen(const Head<Tile>& head) const {
    return head.seen(query + q.rows - 1, key, k.rows) > 0;
  }

  /// P and dS.
  SGTC_INLINE void differentiate(const Head<Tile>& head) {
    multiply_rows(weights, head, q, keys, query, key);
    multiply_rows(gradients, head, doutput, values, query, key);
    for (int64_t row = 0; row < q.rows; ++row) {
      const int64_t seen = head.seen(query + row, key, k.rows);
      const int64_t columns =
          head.seen_by_tile(query + row / Tile::kRows * Tile::kRows, key, k.rows);
      const E delta = delta_of_row(head, query + row);
      const E maximum = *head.query_row(t.maximum, s.maximum, query + row);
      const E factor = 1 / *head.query_row(t.sum, s.sum, query + row);
      for (int64_t i = 0; i < columns; i += kLanes) {
        E* weight = weights.row(row) + i;
        E* gradient = gradients.row(row) + i;
        const V scores = head.scores(load<V>(weight), query + row, key + i, seen - i);
        const V p = exp(scores - maximum) * factor;
        store<V>(weight, p);
        store<V>(gradient, p * (load<V>(gradient) - delta) * static_cast<E>(s.scale));
      }
    }
  }

 private:
  SGTC_INLINE E delta_of_row(const Head<Tile>& head, int64_t row) const {
    const auto* a = head.query_row(t.doutput, s.doutput, row);
    const auto* b = head.query_row(t.output, s.output, row);
    V sums = {};
    for (int64_t i = 0; i < s.value_size; i += kLanes) {
      const int64_t count = minimum(kLanes, s.value_size - i);
      sums += load_wide<V>(a + i, count) * load_wide<V>(b + i, count);
    }
    return sum_of_lanes(sums);
  }
};

/// to = (first ? 0 : to) + sums.
template <typename Tile>
SGTC_INLINE void store_rows(typename Tile::T* to, SumBlock<Tile>& sums, int64_t rows,
                            int64_t stride, int64_t width, bool first) {
  using V = typename Tile::V;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; i += kLanes) {
      auto* part = to + row * stride + i;
      const int64_t count = minimum(kLanes, width - i);
      const V sum = load<V>(sums.row(row) + i);
      store_narrow<V>(part, first ? sum : load_wide<V>(part, count) + sum, count);
    }
  }
}

/// Columns from `first` on of dq for queries from `query` on of a head.
template <typename Tile>
SGTC_INLINE void query_gradient(const Tensors<Tile>& t, const Head<Tile>& head, int64_t query,
                                int64_t first) {
  Pair<Tile> pair(t, head.s);
  SumBlock<Tile> dq;
  if (head.s.keys == 0) dq.clear();
  pair.set_queries(head, query);
  for (int64_t key = 0; key < head.s.keys; key += kAttentionRows) {
    pair.set_keys(head, key);
    if (!pair.is_seen(head)) break;
    pair.differentiate(head);
    add_product(dq, head, pair.gradients, pair.k, first, query, pair.q.rows, key, key == 0);
  }
  store_rows<Tile>(head.query_row(t.dq, head.s.dq, query) + first, dq, pair.q.rows,
                   head.s.dq.strides[2], pair.q.width(first), true);
}

/// Columns from `first` on of dk and dv for the keys from `key` on that the heads `begin` … `end`
/// of `batch` share, and, if `adds_queries`, what these keys give to dq.
template <typename Tile>
SGTC_INLINE void key_gradients(const Tensors<Tile>& t, const AttentionShape& s, int64_t batch,
                               int64_t begin, int64_t end, int64_t key, int64_t first,
                               bool adds_queries) {
  Pair<Tile> pair(t, s);
  SumBlock<Tile> dk, dv, dq;
  bool is_first = true;
  const Head<Tile> shared = Head<Tile>::at(s, t.mask, batch, begin);
  pair.set_keys(shared, key);
  for (int64_t index = begin; index < end; ++index) {
    const Head<Tile> head = Head<Tile>::at(s, t.mask, batch, index);
    for (int64_t query = s.causal != 0 ? key : 0; query < s.queries; query += kAttentionRows) {
      pair.set_queries(head, query);
      pair.differentiate(head);
      add_transposed_product(dv, head, pair.weights, pair.doutput, first, query, key, pair.k.rows,
                             is_first);
      add_transposed_product(dk, head, pair.gradients, pair.q, first, query, key, pair.k.rows,
                             is_first);
      is_first = false;
      if (!adds_queries) continue;
      add_product(dq, head, pair.gradients, pair.k, first, query, pair.q.rows, key, true);
      store_rows<Tile>(head.query_row(t.dq, s.dq, query) + first, dq, pair.q.rows, s.dq.strides[2],
                       pair.q.width(first), key == 0);
    }
  }
  if (is_first) {
    dk.clear();
    dv.clear();
  }
  store_rows<Tile>(shared.key_row(t.dk, s.dk, key) + first, dk, pair.k.rows, s.dk.strides[2],
                   pair.k.width(first), true);
  store_rows<Tile>(shared.key_row(t.dv, s.dv, key) + first, dv, pair.k.rows, s.dv.strides[2],
                   slice_width(s.value_size, first), true);
}

template <typename Tile>
SGTC_INLINE void whole_head(const Tensors<Tile>& t, const AttentionShape& s, int64_t index) {
  const int64_t shared = s.heads / s.key_heads;
  const int64_t head = index % s.key_heads * shared;
  for (int64_t key = 0; key < s.keys; key += kAttentionRows) {
    for (int64_t first = 0; first < maximum(s.key_size, s.value_size); first += kSlice) {
      key_gradients(t, s, index / s.key_heads, head, head + shared, key, first, true);
    }
  }
}

template <typename Tile>
SGTC_INLINE void part_of_head(const Tensors<Tile>& t, const AttentionShape& s, int64_t index) {
  const int64_t query_blocks = ceil_divide(s.queries, kAttentionRows);
  const int64_t key_blocks = ceil_divide(s.keys, kAttentionRows);
  const int64_t of_queries = s.batch * s.heads * query_blocks;
  if (index < of_queries) {
    const int64_t head = index / query_blocks;
    for (int64_t first = 0; first < s.key_size; first += kSlice) {
      query_gradient(t, Head<Tile>::at(s, t.mask, head / s.heads, head % s.heads),
                     index % query_blocks * kAttentionRows, first);
    }
    return;
  }
  const int64_t head = (index - of_queries) / key_blocks;
  const int64_t key = (index - of_queries) % key_blocks * kAttentionRows;
  const int64_t shared = s.heads / s.key_heads;
  const int64_t begin = head % s.key_heads * shared;
  for (int64_t first = 0; first < maximum(s.key_size, s.value_size); first += kSlice) {
    key_gradients(t, s, head / s.key_heads, begin, begin + shared, key, first, false);
  }
}

template <typename Tile>
SGTC_INLINE void attention_grad(const AttentionShape* shape, void* const* tensors, int64_t begin,
                                int64_t end) {
  const AttentionShape& s = *shape;
  const Tensors<Tile> t(s, tensors);
  const int64_t of_keys =
      s.batch * s.key_heads * (s.whole_heads != 0 ? 1 : ceil_divide(s.keys, kAttentionRows));
  const int64_t of_queries = s.batch * s.heads * ceil_divide(s.queries, kAttentionRows);
  const int64_t last = minimum(end, of_keys + (s.whole_heads != 0 ? 0 : of_queries));
  for (int64_t index = begin; index < last; ++index) {
    if (s.whole_heads != 0) {
      whole_head(t, s, index);
    } else {
      part_of_head(t, s, index);
    }
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_ATTENTION_GRAD(name, type)                                                          \
  SGTC_EXPORT void sgtc_attention_grad_##name(const sgtc::kernels::AttentionShape* shape,        \
                                              void* const*, void* const* tensors, int64_t begin, \
                                              int64_t end) {                                     \
    using namespace sgtc::kernels;                                                               \
    with_attention_tile<type>(*shape, [&](auto tile) __attribute__((always_inline)) {            \
      attention_grad<decltype(tile)>(shape, tensors, begin, end);                                \
    });                                                                                          \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION_GRAD)

SGTC_KERNELS_END
