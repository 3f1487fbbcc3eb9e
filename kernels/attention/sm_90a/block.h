// What the kernels of attention for sm_90a share.
#pragma once

#include "attention/sm_90a/launch.h"
#include "hopper/ring.h"
#include "hopper/staging.h"
#include "hopper/tensor_core.h"

namespace sgtc::kernels {

/// Read anew at each use: no kernel has registers to keep an item in.
SGTC_DEVICE AttentionItem attention_item(const AttentionItem* items, uint32_t round) {
  uint32_t words[4];
  hopper::load_constant(items + round * hopper::block_count() + hopper::block_index(), words);
  return __builtin_bit_cast(AttentionItem, words);
}

/// The first of 64 rows (queries or keys) of a consumer in a round. Consumers change places in each
/// round, because in a causal attention places differ in work.
template <uint32_t Consumers>
SGTC_DEVICE uint32_t first_row_of_consumer(const AttentionItem& work, uint32_t consumer,
                                           uint32_t round) {
  return (work.group * Consumers + (consumer + round) % Consumers) * kAttentionRows;
}

/// One thread of a warpgroup signals for all.
SGTC_DEVICE bool is_leader() {
  return hopper::thread_index_again() % hopper::kWarpgroupThreads == 0;
}
SGTC_DEVICE void release(uint32_t barrier) {
  if (is_leader()) hopper::arrive_at(barrier);
}

/// The thread's first row among the 64 of its warpgroup; its second is 8 further.
SGTC_DEVICE uint32_t first_row_of_thread() {
  const uint32_t thread = hopper::thread_index_again() % hopper::kWarpgroupThreads;
  return thread / hopper::kWarpThreads * 16 + thread % hopper::kWarpThreads / 4;
}

/// Copies rows of one head: a box of 64 elements per row after the other.
template <uint32_t Size>
SGTC_DEVICE void copy_rows(uint32_t to, uint32_t box_bytes, const void* tensor, uint32_t row,
                           uint32_t head, uint32_t batch, uint32_t barrier) {
#pragma clang loop unroll(full)
  for (uint32_t box = 0; box < Size / 64; ++box) {
    hopper::copy_box(to + box * box_bytes, static_cast<const hopper::TensorMap*>(tensor), 64 * box,
                     row, head, batch, barrier);
  }
}

/// sums = a b over the elements of a head, both depth-major tiles: 64 rows of a, `Rows` of b.
template <uint32_t Size, uint32_t Rows, int Count>
SGTC_DEVICE void multiply_heads(float (&sums)[Count], uint64_t a, uint64_t b) {
  a = hopper::recomputed(a);
#pragma clang loop unroll(full)
  for (uint32_t step = 0; step < Size / hopper::kProductDepth; ++step) {
    const uint32_t box = step / 4;
    const uint64_t at = step % 4 * hopper::kDepthStep<false>;
    hopper::multiply<false>(sums, a + box * (hopper::kBoxBytes / 16) + at,
                            b + box * (Rows * hopper::kRowBytes / 16) + at, step > 0);
  }
}

/// sums = (accumulate ? sums : 0) + weights b, where b is a tile of `Rows` rows, line-major.
template <uint32_t Rows, int Count>
SGTC_DEVICE void multiply_weights(float (&sums)[Count], const uint32_t (&weights)[Rows / 4],
                                  uint64_t b, bool accumulate) {
#pragma clang loop unroll(full)
  for (uint32_t step = 0; step < Rows / hopper::kProductDepth; ++step) {
    hopper::multiply<true>(sums, weights + 4 * step, b + step * hopper::kDepthStep<true>,
                           step > 0 || accumulate);
  }
}

/// What is stored of the rows of a head.
struct StoredRows {
  uint32_t head, rows, columns;
};

/// Gives the warpgroup's 64 rows from `row` on to the visitor.
template <int Count>
SGTC_DEVICE void store_rows(hopper::TileStore store, void* const* args, const StoredRows& stored,
                            uint32_t row, uint32_t staging, const float (&sums)[Count]) {
  const uint32_t warp = hopper::thread_index_again() / hopper::kWarpThreads % 4;
  const uint32_t buffer = staging + warp * hopper::kStagingBytes;
#pragma clang loop unroll(full)
  for (uint32_t part = 0; part < Count / 16; ++part) {
    const uint32_t half = part % 2;
    hopper::stage_sums(buffer, sums + 32 * (part / 2) + 2 * half);
    hopper::visit_staged(store, args, stored.head, row + 16 * warp + 8 * half, 64 * (part / 2),
                         buffer, [&](uint32_t at, uint32_t column) SGTC_LAMBDA {
                           return at < stored.rows && column < stored.columns ? 8 : 0;
                         });
  }
}

}  // namespace sgtc::kernels
