// The gradient of attention without tensor cores, for all types and sizes. With
// P = exp(scores - maximum) / sum and delta = rowsum(dO * O):
//   dV = P^T dO,  dS = scale P * (dO V^T - delta),  dQ = dS K,  dK = dS^T Q.
// There are two kinds of blocks, so that nothing needs atomic operations: dQ of 64 queries, and dK
// and dV of 64 keys. Both compute P and dS, so 7 products instead of 5.
#include "attention/gpu/block.h"

namespace sgtc::gpu {
namespace {

template <typename T>
class Gradient {
 public:
  using E = SumTypeOf<T>;

  SGTC_METHOD Gradient(const AttentionShape& s, void* const* tensors)
      : s_(s),
        q_(static_cast<const T*>(tensors[0])),
        k_(static_cast<const T*>(tensors[1])),
        v_(static_cast<const T*>(tensors[2])),
        output_(static_cast<const T*>(tensors[3])),
        maximum_(static_cast<const E*>(tensors[4])),
        sum_(static_cast<const E*>(tensors[5])),
        doutput_(static_cast<const T*>(tensors[6])),
        mask_(tensors[7]),
        dq_(static_cast<T*>(tensors[7 + s.has_mask])),
        dk_(static_cast<T*>(tensors[8 + s.has_mask])),
        dv_(static_cast<T*>(tensors[9 + s.has_mask])),
        key_size_(static_cast<uint32_t>(s.key_size)),
        value_size_(static_cast<uint32_t>(s.value_size)) {}

  SGTC_METHOD void run() const {
    const uint32_t query_passes = passes_of(s_.key_size);
    const uint32_t of_queries =
        static_cast<uint32_t>(s_.batch * s_.heads) * tiles_of(s_.queries) * query_passes;
    const uint32_t key_passes = passes_of(maximum(s_.key_size, s_.value_size));
    const uint32_t of_keys =
        static_cast<uint32_t>(s_.batch * s_.key_heads) * tiles_of(s_.keys) * key_passes;
    if (block_index() < of_queries) {
      query_gradient(block_index() / query_passes,
                     block_index() % query_passes * kAttentionColumns);
    } else if (block_index() - of_queries < of_keys) {
      const uint32_t index = block_index() - of_queries;
      key_gradients(index / key_passes, index % key_passes * kAttentionColumns);
    }
  }

 private:
  enum Row : uint32_t { kDelta = 0, kMaximum = 1, kFactor = 2 };

  SGTC_METHOD static uint32_t tiles_of(int64_t lines) {
    return static_cast<uint32_t>(ceil_divide(lines, kAttentionLines));
  }
  SGTC_METHOD static uint32_t passes_of(int64_t columns) {
    return static_cast<uint32_t>(maximum(1, ceil_divide(columns, kAttentionColumns)));
  }

  /// Columns from `first` on of dq for the tile `index` of all queries.
  SGTC_METHOD void query_gradient(uint32_t index, uint32_t first) const {
    const uint32_t tiles = tiles_of(s_.queries), heads = static_cast<uint32_t>(s_.heads);
    const auto head = HeadRows<T>::at(s_, mask_, index / tiles / heads, index / tiles % heads);
    const uint32_t query = index % tiles * kAttentionLines, keys = head.seen_keys(query);
    const uint32_t rows = lines_from(query, s_.queries);
    AttentionSums<E> dq[kAttentionSlices], weights, gradients;
    clear<E>(dq);
    read_rows(head, query, rows);
#pragma clang loop unroll(disable)
    for (uint32_t key = 0; key < keys; key += kAttentionLines) {
      const uint32_t count = lines_from(key, s_.keys);
      differentiate(weights, gradients, head, query, rows, key, count);
      place(gradients);
      add_products<E>(dq, score_rows<E>(), k_ + (head.key_row + key) * s_.key_size, key_size_,
                      first, count);
    }
    store_rows<E>(dq_ + (head.query_row + query) * s_.key_size, dq, rows, key_size_, first,
                  [](uint32_t, E sum) SGTC_LAMBDA { return sum; });
  }

  /// Columns from `first` on of dk and dv for the tile `index` of all keys.
  SGTC_METHOD void key_gradients(uint32_t index, uint32_t first) const {
    const uint32_t tiles = tiles_of(s_.keys), key_heads = static_cast<uint32_t>(s_.key_heads);
    const auto shared = static_cast<uint32_t>(s_.heads / s_.key_heads);
    const uint32_t batch = index / tiles / key_heads;
    const uint32_t begin = index / tiles % key_heads * shared;
    const uint32_t key = index % tiles * kAttentionLines, count = lines_from(key, s_.keys);
    AttentionSums<E> dk[kAttentionSlices], dv[kAttentionSlices], weights, gradients;
    clear<E>(dk);
    clear<E>(dv);
#pragma clang loop unroll(disable)
    for (uint32_t of = begin; of < begin + shared; ++of) {
      const auto head = HeadRows<T>::at(s_, mask_, batch, of);
#pragma clang loop unroll(disable)
      for (uint32_t query = s_.causal != 0 ? key : 0; query < s_.queries;
           query += kAttentionLines) {
        const uint32_t rows = lines_from(query, s_.queries);
        const int64_t row = head.query_row + query;
        read_rows(head, query, rows);
        differentiate(weights, gradients, head, query, rows, key, count);
        place(weights);
        add_products<E>(dv, score_columns<E>(), doutput_ + row * s_.value_size, value_size_, first,
                        rows);
        synchronize_block();
        place(gradients);
        add_products<E>(dk, score_columns<E>(), q_ + row * s_.key_size, key_size_, first, rows);
      }
    }
    const auto head = HeadRows<T>::at(s_, mask_, batch, begin);
    const auto same = [](uint32_t, E sum) SGTC_LAMBDA { return sum; };
    store_rows<E>(dk_ + (head.key_row + key) * s_.key_size, dk, count, key_size_, first, same);
    store_rows<E>(dv_ + (head.key_row + key) * s_.value_size, dv, count, value_size_, first, same);
  }

  /// delta, maximum and 1 / sum of the queries' rows; four threads have a row.
  SGTC_METHOD void read_rows(const HeadRows<T>& head, uint32_t query, uint32_t rows) const {
    const uint32_t row = thread_index() / kThreadsOfRow, lane = thread_index() % kWarpThreads;
    const int64_t at = head.query_row + query + (row < rows ? row : rows - 1);
    E delta = 0;
    for (uint32_t i = thread_index() % kThreadsOfRow; i < value_size_; i += kThreadsOfRow) {
      delta += static_cast<E>(widened(doutput_[at * s_.value_size + i])) *
               static_cast<E>(widened(output_[at * s_.value_size + i]));
    }
    delta += of_lane(delta, lane ^ 1);
    delta += of_lane(delta, lane ^ 2);
    synchronize_block();
    if (thread_index() % kThreadsOfRow == 0) {
      memory().rows[kDelta][row] = delta;
      memory().rows[kMaximum][row] = maximum_[at];
      memory().rows[kFactor][row] = 1 / sum_[at];
    }
    synchronize_block();
  }

  /// P and dS of a tile.
  SGTC_METHOD void differentiate(AttentionSums<E>& weights, AttentionSums<E>& gradients,
                                 const HeadRows<T>& head, uint32_t query, uint32_t rows,
                                 uint32_t key, uint32_t count) const {
    const int64_t row = head.query_row + query, key_row = head.key_row + key;
    multiply_tile<AttentionTile<E>>(weights, rows_of(q_ + row * s_.key_size, key_size_, rows),
                                    rows_of(k_ + key_row * s_.key_size, key_size_, count), 0,
                                    key_size_);
    multiply_tile<AttentionTile<E>>(
        gradients, rows_of(doutput_ + row * s_.value_size, value_size_, rows),
        rows_of(v_ + key_row * s_.value_size, value_size_, count), 0, value_size_);
    for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t at, uint32_t column) SGTC_LAMBDA {
      const E score = head.score(weights[i][j], query + at, key + column);
      const E weight = exp(score - memory().rows[kMaximum][at]) * memory().rows[kFactor][at];
      weights[i][j] = weight;
      gradients[i][j] =
          weight * (gradients[i][j] - memory().rows[kDelta][at]) * static_cast<E>(s_.scale);
    });
  }

  /// Puts a tile into shared memory as a factor of products.
  SGTC_METHOD static void place(const AttentionSums<E>& tile) {
    for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t row, uint32_t column) SGTC_LAMBDA {
      memory().scores[row * AttentionMemory<E>::kPitch + column] = tile[i][j];
    });
    synchronize_block();
  }

  SGTC_METHOD static SGTC_SHARED AttentionMemory<E>& memory() { return attention_memory<E>(); }

  const AttentionShape& s_;
  const T *q_, *k_, *v_, *output_;
  const E *maximum_, *sum_;
  const T* doutput_;
  const void* mask_;
  T *dq_, *dk_, *dv_;
  const uint32_t key_size_, value_size_;
};

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_ATTENTION_GRAD(name, type)                                                   \
  SGTC_EXPORT void sgtc_attention_grad_##name(const sgtc::kernels::AttentionShape* shape, \
                                              void* const*, void* const* tensors) {       \
    sgtc::gpu::Gradient<type>(*shape, tensors).run();                                     \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION_GRAD)
