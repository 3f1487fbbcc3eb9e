// What attention for sm_90a needs from whoever launches it. Read by the kernels and by the host.
//
// output[batch, head, query, :] = softmax over keys of (scale q k) v, in bfloat16 with sums in
// single precision; heads share the keys of heads / key_heads others. In a causal attention, key j
// serves the queries from j on. Head sizes are those of the forms, equal for keys and values.
//
// The entries are
//   void sgtc_attention_sm_90a_FORM(const AttentionSm90aShape* shape, void* const* args,
//                                   const AttentionSm90aTensors* tensors)
// with FORM d64, d64_wide or d128. `args` is passed on to sgtc_tile_store, whose batch is
// batch * heads + head, row a query and column an element of the head.
//
// A launch has attention_threads(form) threads and attention_shared_bytes(form) of dynamic shared
// memory per block, at most form.registers per thread at entry, and at most as many blocks as are
// resident. Tensor maps have the dimensions {size, sequence, head, batch}, any strides, the
// 128-byte swizzle and boxes {64, 64} for queries, {64, form.keys} for keys and values.
#pragma once

#include <stdint.h>

#include "hopper/host.h"

namespace sgtc::kernels {

struct AttentionForm {
  uint32_t size;       // of a head
  uint32_t consumers;  // warpgroups with 64 queries each
  uint32_t keys;       // of one tile
  uint32_t stages;     // tiles of keys, and of values, in shared memory
  uint32_t registers, producer_registers, consumer_registers;
};

inline constexpr AttentionForm kAttention64 = {64, 2, 128, 4, 168, 24, 240};
inline constexpr AttentionForm kAttention64Wide = {64, 4, 64, 6, 96, 32, 112};
inline constexpr AttentionForm kAttention128 = {128, 2, 128, 2, 168, 24, 240};

/// 64 * form.consumers queries of one head, from query group * 64 * form.consumers on.
struct alignas(16) AttentionItem {
  uint32_t batch;
  uint16_t head, key_head;
  uint32_t group;
  uint32_t is_work;  // 0: no more work for this block
};

/// The shape of a launch, constants in a compiled model.
struct AttentionSm90aShape {
  int64_t heads, queries, keys;
  int64_t causal;
  int64_t rounds;  // items per block
  double scale;    // positive
};

struct AttentionSm90aTensors {
  const void* q;  // tensor maps in global memory
  const void* k;
  const void* v;
  const AttentionItem* items;  // [rounds, blocks]
  float* log_sum_exp;          // [batch, heads, queries], natural, of the scaled scores
};

inline constexpr uint32_t kAttentionQueries = 64;  // of one consumer
inline constexpr uint32_t kAttentionQueryBuffers = 2;

constexpr uint32_t attention_threads(const AttentionForm& form) {
  return 128 * (form.consumers + 1);
}

/// Tiles of keys and values, queries, the staging of the consumers' warps, barriers.
constexpr uint32_t attention_shared_bytes(const AttentionForm& form) {
  const uint32_t queries = kAttentionQueryBuffers * form.consumers;
  return 2 * form.stages * form.keys * form.size * 2 + queries * kAttentionQueries * form.size * 2 +
         4 * form.consumers * hopper::kStagingBytes + 8 * (4 * form.stages + 2 * queries);
}

}  // namespace sgtc::kernels
