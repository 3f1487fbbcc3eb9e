// Attention without tensor cores: softmax(scale q k^T + mask) v with the maximum and sum of each
// row of scores, for all types and sizes. A block has 64 queries of one head and up to 128 columns
// of their results, and walks over the keys with a running maximum and sum of each row.
#include "attention/gpu/block.h"

namespace sgtc::gpu {
namespace {

template <typename T>
class Forward {
 public:
  using E = SumTypeOf<T>;

  SGTC_METHOD Forward(const AttentionShape& s, void* const* tensors) : s_(s), tensors_(tensors) {}

  SGTC_METHOD void run() {
    const auto tiles = static_cast<uint32_t>(ceil_divide(s_.queries, kAttentionLines));
    const auto passes =
        static_cast<uint32_t>(maximum(1, ceil_divide(s_.value_size, kAttentionColumns)));
    const auto heads = static_cast<uint32_t>(s_.heads);
    if (s_.batch * s_.heads * tiles == 0) return;
    const uint32_t tile = block_index() / passes % tiles, head = block_index() / passes / tiles;
    attend(HeadRows<T>::at(s_, tensors_[3], head / heads, head % heads), tile * kAttentionLines,
           block_index() % passes * kAttentionColumns);
  }

 private:
  enum Row : uint32_t { kShrink = 0, kTotal = 1 };

  SGTC_METHOD void attend(const HeadRows<T>& head, uint32_t query, uint32_t first) {
    const auto key_size = static_cast<uint32_t>(s_.key_size);
    const auto value_size = static_cast<uint32_t>(s_.value_size);
    const uint32_t rows = lines_from(query, s_.queries), keys = head.seen_keys(query);
    const T* q = static_cast<const T*>(tensors_[0]) + (head.query_row + query) * s_.key_size;
    const T* k = static_cast<const T*>(tensors_[1]) + head.key_row * s_.key_size;
    const T* v = static_cast<const T*>(tensors_[2]) + head.key_row * s_.value_size;
    AttentionSums<E> output[kAttentionSlices];
    clear<E>(output);
#pragma clang loop unroll(disable)
    for (uint32_t key = 0; key < keys; key += kAttentionLines) {
      const uint32_t count = keys - key < kAttentionLines ? keys - key : kAttentionLines;
      AttentionSums<E> products;
      multiply_tile<AttentionTile<E>>(products, rows_of(q, key_size, rows),
                                      rows_of(k + key * s_.key_size, key_size, count), 0, key_size);
      for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t row, uint32_t column) SGTC_LAMBDA {
        const bool inside = column < count;
        memory().scores[row * AttentionMemory<E>::kPitch + column] =
            inside ? head.score(products[i][j], query + row, key + column) : -Format<E>::kInfinity;
      });
      synchronize_block();
      weigh();
      synchronize_block();
      shrink(output);
      add_products<E>(output, score_rows<E>(), v + key * s_.value_size, value_size, first, count);
    }
    finish(head, output, query, rows, first);
  }

  /// Turns scores into weights; four threads have a row.
  SGTC_METHOD void weigh() {
    constexpr uint32_t kOwn = kAttentionLines / kThreadsOfRow;
    const uint32_t row = thread_index() / kThreadsOfRow;
    SGTC_SHARED E* own =
        memory().scores + row * AttentionMemory<E>::kPitch + thread_index() % kThreadsOfRow;
    E largest = maximum_;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kOwn; ++i) {
      const E score = own[i * kThreadsOfRow];
      largest = score > largest ? score : largest;
    }
    largest = of_row(largest, [](E a, E b) SGTC_LAMBDA { return b > a ? b : a; });
    const E base = largest == -Format<E>::kInfinity ? E{} : largest;
    E sum = 0;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kOwn; ++i) {
      const E weight = exp(own[i * kThreadsOfRow] - base);
      own[i * kThreadsOfRow] = weight;
      sum += weight;
    }
    const E factor = exp(maximum_ - base);
    sum_ = sum_ * factor + of_row(sum, [](E a, E b) SGTC_LAMBDA { return a + b; });
    maximum_ = largest;
    if (thread_index() % kThreadsOfRow == 0) memory().rows[kShrink][row] = factor;
  }

  /// Joins the values of the four threads of a row.
  template <typename Join>
  SGTC_METHOD static E of_row(E value, Join join) {
    const uint32_t lane = thread_index() % kWarpThreads;
    value = join(value, of_lane(value, lane ^ 1));
    return join(value, of_lane(value, lane ^ 2));
  }

  SGTC_METHOD void shrink(AttentionSums<E> (&output)[kAttentionSlices]) const {
#pragma clang loop unroll(full)
    for (uint32_t slice = 0; slice < kAttentionSlices; ++slice) {
      for_each_sum<E>([&](uint32_t i, uint32_t j, uint32_t row, uint32_t)
                          SGTC_LAMBDA { output[slice][i][j] *= memory().rows[kShrink][row]; });
    }
  }

  SGTC_METHOD void finish(const HeadRows<T>& head,
                          const AttentionSums<E> (&output)[kAttentionSlices], uint32_t query,
                          uint32_t rows, uint32_t first) const {
    T* result = static_cast<T*>(tensors_[3 + s_.has_mask]);
    E* largest = static_cast<E*>(tensors_[4 + s_.has_mask]);
    E* sums = static_cast<E*>(tensors_[5 + s_.has_mask]);
    const uint32_t row = thread_index() / kThreadsOfRow;
    const bool zeros = s_.keys == 0 || (s_.zero_empty != 0 && sum_ == 0);
    const E total = zeros ? E{1} : sum_;
    if (thread_index() % kThreadsOfRow == 0) {
      memory().rows[kTotal][row] = total;
      if (first == 0 && row < rows) {
        largest[head.query_row + query + row] = zeros ? E{} : maximum_;
        sums[head.query_row + query + row] = total;
      }
    }
    synchronize_block();
    store_rows<E>(result + (head.query_row + query) * s_.value_size, output, rows,
                  static_cast<uint32_t>(s_.value_size), first,
                  [&](uint32_t of, E sum) SGTC_LAMBDA { return sum / memory().rows[kTotal][of]; });
  }

  SGTC_METHOD static SGTC_SHARED AttentionMemory<E>& memory() { return attention_memory<E>(); }

  const AttentionShape& s_;
  void* const* tensors_;
  // Of the thread's row.
  E maximum_ = -Format<E>::kInfinity;
  E sum_ = 0;
};

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_ATTENTION(name, type)                                                                 \
  SGTC_EXPORT void sgtc_attention_##name(const sgtc::kernels::AttentionShape* shape, void* const*, \
                                         void* const* tensors) {                                   \
    sgtc::gpu::Forward<type>(*shape, tensors).run();                                               \
  }
SGTC_FOR_EACH_FLOAT(SGTC_ATTENTION)
