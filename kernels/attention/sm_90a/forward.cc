// Attention on Hopper's tensor cores; launch.h is the contract.
//
// The idea is that of FlashAttention (Dao et al., 2022): the matrix of scores is never in memory. A
// consumer warpgroup keeps 64 queries, walks over tiles of keys and values, and holds scores,
// weights and output in registers; accumulators of the scores are, as bfloat16, already the left
// operand of the product with the values. What decides the speed is that the tensor cores work
// while the exponentials are computed (Shah et al., FlashAttention-3, 2024):
// - The scores of the next tile are started before the product of this tile's weights and values,
//   and its softmax runs while the latter is computed.
// - Several warpgroups per block are at different places.
// Blocks are resident and work off lists (schedule.h), long items first. In a causal attention the
// consumers' rows of an item need different numbers of tiles; they take turns at the longest.
// Tiles are walked from the last key to the first, so that only the first one needs a mask.
#include "attention/sm_90a/block.h"
#include "attention/sm_90a/mask.h"
#include "attention/sm_90a/softmax.h"

namespace sgtc::kernels {
namespace {

using namespace sgtc::hopper;

template <AttentionForm Form, bool Masked>
class Forward {
 public:
  SGTC_METHOD Forward(const AttentionSm90aShape& shape, void* const* args,
                      const AttentionSm90aTensors& tensors)
      : shape_(shape), args_(args), tensors_(tensors) {}

  SGTC_METHOD void run() {
    const uint32_t warpgroup = of_first_lane(thread_index() / kWarpgroupThreads);
    initialize_barriers();
    if (warpgroup == 0) {
      shrink_registers<Form.producer_registers>();
      if (thread_index() == 0) produce();
      return;
    }
    grow_registers<Form.consumer_registers>();
    // One copy of the code per warpgroup: with a constant number, descriptors stay in uniform
    // registers.
    if (warpgroup == 1) consume<0>();
    if (warpgroup == 2) consume<1>();
    if constexpr (Form.consumers == 4) {
      if (warpgroup == 3) consume<2>();
      if (warpgroup == 4) consume<3>();
    }
  }

 private:
  static_assert(Form.consumers == 2 || Form.consumers == 4);
  using Ring = RingPosition<Form.stages>;
  using QueryRing = RingPosition<kAttentionQueryBuffers>;
  static constexpr uint32_t kHeadBoxes = Form.size / 64;
  static constexpr uint32_t kTileBox = Form.keys * kRowBytes;  // keys x 64
  static constexpr uint32_t kTileBytes = kHeadBoxes * kTileBox;
  static constexpr uint32_t kQueryBytes = kHeadBoxes * kBoxBytes;
  static constexpr uint32_t kQueryTiles = kAttentionQueryBuffers * Form.consumers;
  using Scores = float[Form.keys / 2];
  using Weights = uint32_t[Form.keys / 4];
  using Output = float[Form.size / 2];

  SGTC_METHOD uint32_t keys_at(uint32_t stage) const { return begin_ + stage * kTileBytes; }
  SGTC_METHOD uint32_t values_at(uint32_t stage) const { return keys_at(Form.stages + stage); }
  SGTC_METHOD uint32_t queries_at(uint32_t tile) const {
    return keys_at(2 * Form.stages) + tile * kQueryBytes;
  }
  SGTC_METHOD uint32_t staging() const { return queries_at(kQueryTiles); }
  SGTC_METHOD uint32_t keys_full(uint32_t stage) const {
    return staging() + 4 * Form.consumers * kStagingBytes + 8 * stage;
  }
  SGTC_METHOD uint32_t keys_empty(uint32_t stage) const { return keys_full(Form.stages + stage); }
  SGTC_METHOD uint32_t values_full(uint32_t stage) const {
    return keys_full(2 * Form.stages + stage);
  }
  SGTC_METHOD uint32_t values_empty(uint32_t stage) const {
    return keys_full(3 * Form.stages + stage);
  }
  SGTC_METHOD uint32_t query_full(uint32_t tile) const { return keys_full(4 * Form.stages + tile); }
  SGTC_METHOD uint32_t query_empty(uint32_t tile) const { return query_full(kQueryTiles + tile); }

  SGTC_METHOD void initialize_barriers() const {
    if (thread_index() == 0) {
      for (uint32_t stage = 0; stage < Form.stages; ++stage) {
        initialize_barrier(keys_full(stage), 1);
        initialize_barrier(values_full(stage), 1);
        initialize_barrier(keys_empty(stage), Form.consumers);
        initialize_barrier(values_empty(stage), Form.consumers);
      }
      for (uint32_t tile = 0; tile < 2 * kQueryTiles; ++tile) {
        initialize_barrier(query_full(tile), 1);
      }
      publish_barriers();
    }
    synchronize(0, attention_threads(Form));
  }

  // Tiles of keys that queries up to `last` need.
  SGTC_METHOD uint32_t tiles_until(uint32_t last) const {
    const uint32_t keys = static_cast<uint32_t>(shape_.keys);
    const uint32_t tiles = (keys + Form.keys - 1) / Form.keys;
    const uint32_t needed = last / Form.keys + 1;
    return shape_.causal != 0 && needed < tiles ? needed : tiles;
  }
  SGTC_METHOD uint32_t tiles_of(const AttentionItem& work) const {
    return tiles_until((work.group + 1) * Form.consumers * kAttentionRows - 1);
  }

  // The producer.

  SGTC_METHOD void produce() const {
    Ring ring;
    QueryRing queries;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const AttentionItem work = attention_item(tensors_.items, round);
      if (work.is_work == 0) break;
      for (uint32_t consumer = 0; consumer < Form.consumers; ++consumer) {
        const uint32_t tile = queries.stage * Form.consumers + consumer;
        wait_for(query_empty(tile), queries.parity ^ 1);
        arrive_and_expect(query_full(tile), kQueryBytes);
        copy_rows<Form.size>(queries_at(tile), kBoxBytes, tensors_.q,
                             first_row_of_consumer<Form.consumers>(work, consumer, round),
                             work.head, work.batch, query_full(tile));
      }
      queries.advance();
      for (uint32_t tile = tiles_of(work); tile-- > 0;) {
        fill(keys_at(ring.stage), keys_empty(ring.stage), keys_full(ring.stage), ring.parity,
             tensors_.k, tile, work);
        fill(values_at(ring.stage), values_empty(ring.stage), values_full(ring.stage), ring.parity,
             tensors_.v, tile, work);
        ring.advance();
      }
    }
  }

  SGTC_METHOD void fill(uint32_t to, uint32_t empty, uint32_t full, uint32_t parity,
                        const void* tensor, uint32_t tile, const AttentionItem& work) const {
    wait_for(empty, parity ^ 1);
    arrive_and_expect(full, kTileBytes);
    copy_rows<Form.size>(to, kTileBox, tensor, tile * Form.keys, work.key_head, work.batch, full);
  }

  // The consumers.

  template <uint32_t Consumer>
  SGTC_METHOD void consume() const {
    uint32_t position = 0;  // tiles that the producer has filled for the rounds before
    QueryRing queries;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const AttentionItem work = attention_item(tensors_.items, round);
      if (work.is_work == 0) break;
      const uint32_t query = first_row_of_consumer<Form.consumers>(work, Consumer, round);
      const uint32_t tiles = tiles_until(query + kAttentionRows - 1);
      const uint32_t all = tiles_of(work);
      skip_tiles(position, all - tiles);
      const uint32_t query_tile = queries.stage * Form.consumers + Consumer;
      wait_for(query_full(query_tile), queries.parity);
      Output output;
      RowStatistics rows;
      attend(Ring::at(position + all - tiles), query_tile, query, tiles, output, rows,
             HeadMask(shape_, tensors_.mask, work.batch, work.head));
      store<Consumer>(work, query, output, rows);
      position += all;
      queries.advance();
    }
  }

  // One thread waits for tiles that the other consumers need, since it alone releases them. Were
  // others to wait as well, they could miss a whole round of the ring's parity.
  SGTC_METHOD void skip_tiles(uint32_t position, uint32_t count) const {
    if (!is_leader()) return;
    for (uint32_t i = 0; i < count; ++i) {
      const Ring ring = Ring::at(position + i);
      wait_for(keys_full(ring.stage), ring.parity);
      arrive_at(keys_empty(ring.stage));
      wait_for(values_full(ring.stage), ring.parity);
      arrive_at(values_empty(ring.stage));
    }
  }

  SGTC_METHOD void attend(Ring ring, uint32_t query_tile, uint32_t query, uint32_t tiles,
                          Output& output, RowStatistics& rows, const HeadMask& head_mask) const {
    const float factor = Masked ? kLog2E : static_cast<float>(shape_.scale) * kLog2E;
    Scores scores;
    Weights weights;
    Ring values = ring;
    wait_for(keys_full(ring.stage), ring.parity);
    begin_products();
    start_scores(scores, query_tile, ring.stage);
    wait_for_products<0>();
    tie(scores);
    release(keys_empty(ring.stage));
    ring.advance();
    add_mask(scores, head_mask, query, tiles - 1);
    hide(scores, query, tiles - 1);
    weigh<Masked>(scores, rows, factor);
    pack_weights(scores, weights);
    wait_for(values_full(values.stage), values.parity);
    for (uint32_t tile = 1; tile < tiles; ++tile) {
      wait_for(keys_full(ring.stage), ring.parity);
      begin_products();
      start_scores(scores, query_tile, ring.stage);
      start_output(output, weights, values.stage, tile > 1);
      wait_for_products<1>();
      tie(scores);
      release(keys_empty(ring.stage));
      add_mask(scores, head_mask, query, tiles - 1 - tile);
      weigh<Masked>(scores, rows, factor);
      tie(scores);
      // The branch of this wait keeps ptxas from moving the next one above the softmax.
      wait_for(values_full(ring.stage), ring.parity);
      wait_for_products<0>();
      tie(output);
      release(values_empty(values.stage));
      scale_rows(output, rows.shrink[0], rows.shrink[1]);
      pack_weights(scores, weights);
      values = ring;
      ring.advance();
    }
    release(query_empty(query_tile));
    begin_products();
    start_output(output, weights, values.stage, tiles > 1);
    wait_for_products<0>();
    tie(output);
    release(values_empty(values.stage));
  }

  SGTC_METHOD void start_scores(Scores& scores, uint32_t query_tile, uint32_t stage) const {
    multiply_heads<Form.size, Form.keys>(
        scores, operand_descriptor<false>(queries_at(query_tile)),
        operand_descriptor<false>(keys_at(0)) + stage * (kTileBytes / 16));
    commit_products();
  }

  SGTC_METHOD void start_output(Output& output, const Weights& weights, uint32_t stage,
                                bool accumulate) const {
    multiply_weights<Form.keys>(
        output, weights,
        operand_descriptor<true, kTileBox>(values_at(0)) + stage * (kTileBytes / 16), accumulate);
    commit_products();
  }

  // Products become scores; without a mask they are scaled later.
  SGTC_METHOD void add_mask(Scores& scores, const HeadMask& head_mask, uint32_t query,
                            uint32_t tile) const {
    if constexpr (Masked) {
      add_mask_of_keys(scores, head_mask, query + first_row_of_thread(),
                       tile * Form.keys + thread_index() % 4 * 2, static_cast<float>(shape_.scale));
    }
  }

  SGTC_METHOD void hide(Scores& scores, uint32_t query, uint32_t tile) const {
    const uint32_t last_key = static_cast<uint32_t>(shape_.keys) - 1;
    const uint32_t row = query + first_row_of_thread();
    uint32_t limit[2] = {last_key, last_key};
    if (shape_.causal != 0) {
      limit[0] = row < last_key ? row : last_key;
      limit[1] = row + 8 < last_key ? row + 8 : last_key;
    }
    mask_scores(scores, tile * Form.keys + thread_index() % 4 * 2, limit);
  }

  template <uint32_t Consumer>
  SGTC_METHOD void store(const AttentionItem& work, uint32_t query, Output& output,
                         RowStatistics& rows) const {
    const StoredRows stored = {work.batch * static_cast<uint32_t>(shape_.heads) + work.head,
                               static_cast<uint32_t>(shape_.queries),
                               static_cast<uint32_t>(shape_.value_size)};
    const float unit = Masked ? 1 : static_cast<float>(shape_.scale);
#pragma clang loop unroll(full)
    for (int row = 0; row < 2; ++row) {
      rows.sum[row] += of_lane_xor(rows.sum[row], 1);
      rows.sum[row] += of_lane_xor(rows.sum[row], 2);
      if (Masked && shape_.zero_empty != 0 && rows.sum[row] == 0) {
        rows.maximum[row] = 0;
        rows.sum[row] = 1;
      }
      const uint32_t at = query + first_row_of_thread() + 8 * row;
      if (thread_index() % 4 == 0 && at < stored.rows) {
        const uint64_t place = static_cast<uint64_t>(stored.head) * stored.rows + at;
        tensors_.maximum[place] = rows.maximum[row] * unit;
        tensors_.sum[place] = rows.sum[row];
      }
    }
    scale_rows(output, 1 / rows.sum[0], 1 / rows.sum[1]);
    store_rows(sgtc_tile_store, args_, stored, query, staging() + 4 * Consumer * kStagingBytes,
               output);
  }

  const AttentionSm90aShape& shape_;
  void* const* args_;
  const AttentionSm90aTensors& tensors_;
  const uint32_t begin_ = shared_memory_begin();
  const uint32_t rounds_ = static_cast<uint32_t>(shape_.rounds);
};

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_ATTENTION(name, form, masked)                                             \
  extern "C" __attribute__((always_inline)) void sgtc_attention_sm_90a_##name(         \
      const sgtc::kernels::AttentionSm90aShape* shape, void* const* args,              \
      const sgtc::kernels::AttentionSm90aTensors* tensors) {                           \
    sgtc::kernels::Forward<sgtc::kernels::form, masked>(*shape, args, *tensors).run(); \
  }
SGTC_ATTENTION(d64, kAttention64, false)
SGTC_ATTENTION(d64_wide, kAttention64Wide, false)
SGTC_ATTENTION(d128, kAttention128, false)
SGTC_ATTENTION(d64_masked, kAttention64, true)
SGTC_ATTENTION(d128_masked, kAttention128, true)
