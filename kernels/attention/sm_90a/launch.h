// What attention for sm_90a and its gradient need from whoever launches them. Read by the kernels
// and by the host.
//
// output[batch, head, query, :] = softmax over keys of (scale q k + mask) v, in bfloat16 with sums
// in single precision; heads share the keys of heads / key_heads others. In a causal attention, key
// j serves the queries from j on. Sizes of heads are multiples of 8, at most that of the form: what
// is missing reads as zero and is not stored.
//
// The entries are
//   void sgtc_attention_sm_90a_FORM(const AttentionSm90aShape* shape, void* const* args,
//                                   const AttentionSm90aTensors* tensors)
// with FORM d64, d64_wide or d128, and without a mask, or d64_masked or d128_masked with one.
// `args` is passed on to sgtc_tile_store, whose batch is batch * heads + head, row a query and
// column an element of the head.
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
  int64_t heads, key_heads, queries, keys;
  int64_t key_size, value_size;  // of a head of q and k, and of v and the output
  int64_t causal;
  int64_t zero_empty;       // queries that see no key give 0, with the maximum 0 and the sum 1
  int64_t rounds;           // items per block
  int64_t mask_strides[3];  // batch, head, query; elements of keys are neighbours
  double scale;             // positive
};

struct AttentionSm90aTensors {
  const void* q;  // tensor maps in global memory
  const void* k;
  const void* v;
  const AttentionItem* items;  // [rounds, blocks]
  /// [batch, heads, queries]: the maximum of a query's scores, and the sum of exp(score - maximum).
  /// Two numbers and not their log-sum-exp: next to a maximum of -3e38, as masks give it, the
  /// logarithm of the sum would be lost.
  float* maximum;
  float* sum;
  const uint16_t* mask;  // bfloat16; of masked forms
};

inline constexpr uint32_t kAttentionRows = 64;  // queries or keys of one consumer
inline constexpr uint32_t kAttentionQueryBuffers = 2;

constexpr uint32_t attention_threads(const AttentionForm& form) {
  return 128 * (form.consumers + 1);
}

/// Tiles of keys and values, queries, the staging of the consumers' warps, barriers.
constexpr uint32_t attention_shared_bytes(const AttentionForm& form) {
  const uint32_t queries = kAttentionQueryBuffers * form.consumers;
  return 2 * form.stages * form.keys * form.size * 2 + queries * kAttentionRows * form.size * 2 +
         4 * form.consumers * hopper::kStagingBytes + 8 * (4 * form.stages + 2 * queries);
}

// The gradient has two kernels, in this order: for the queries, and for keys and values,
//   void sgtc_attention_sm_90a_{query,key}_gradient_FORM(
//       const AttentionSm90aShape* shape, void* const* args,
//       const AttentionGradientSm90aTensors* tensors)
// with FORM d64, d128, d64_masked or d128_masked. The first stores the gradient of q; the second
// stores that of k, and that of v through sgtc_tile_store_second; their batch is batch * key_heads
// + key head. Gradients of keys are summed over the heads that share them. All boxes are {64, 64};
// launches have attention_threads() threads as those of kAttention64.

struct AttentionGradientForm {
  uint32_t size;
  uint32_t stages;   // pairs of tiles of 64 rows in shared memory
  uint32_t buffers;  // of a consumer's own tiles
  uint32_t producer_registers, consumer_registers;
};

inline constexpr AttentionGradientForm kQueryGradient64 = {64, 5, 2, 24, 240};
inline constexpr AttentionGradientForm kQueryGradient128 = {128, 3, 1, 24, 240};
inline constexpr AttentionGradientForm kKeyGradient64 = {64, 5, 2, 40, 232};
inline constexpr AttentionGradientForm kKeyGradient128 = {128, 3, 1, 24, 240};
inline constexpr uint32_t kGradientConsumers = 2;

struct AttentionGradientSm90aTensors {
  const void* q;  // tensor maps in global memory, also of the output and of its gradient
  const void* k;
  const void* v;
  const void* output;
  const void* gradient;
  const AttentionItem* items;  // [rounds, blocks]; those of the second kernel are groups of keys
  const float* maximum;        // as the forward pass leaves them
  const float* sum;
  /// [batch * heads, queries rounded up to 64, attention_terms(masked)], written by the first
  /// kernel for the second. Without a mask: log2(e) maximum + log2(sum), which is infinite beyond
  /// the queries, and the sum of output times its gradient, D. With one: maximum, log2(sum), D and
  /// 0.
  float* terms;
  const uint16_t* mask;  // bfloat16; of masked forms
};

constexpr uint32_t attention_terms(bool masked) { return masked ? 4 : 2; }
constexpr uint32_t attention_term_bytes(bool masked) {  // of a tile
  return kAttentionRows * attention_terms(masked) * sizeof(float);
}

/// `own`: tiles of a consumer, 3 (q, output, its gradient) or 2 (k, v).
constexpr uint32_t attention_gradient_shared_bytes(const AttentionGradientForm& form, uint32_t own,
                                                   bool masked) {
  const uint32_t tile = kAttentionRows * form.size * 2;
  return form.stages * (2 * tile + attention_term_bytes(masked)) +
         form.buffers * kGradientConsumers * own * tile +
         4 * kGradientConsumers * hopper::kStagingBytes +
         16 * (form.stages + form.buffers * kGradientConsumers);
}

}  // namespace sgtc::kernels
