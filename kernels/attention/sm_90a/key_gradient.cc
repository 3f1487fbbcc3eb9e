// The gradients of attention with respect to keys and values, on Hopper's tensor cores; launch.h is
// the contract and query_gradient.cc has the formulas and the reasons.
//
// A consumer keeps 64 keys and values, and tiles of queries pass by. It computes the transposes of
// scores and products, k qᵀ and v gᵀ, so that weights and gradients of scores are already the left
// operands of dv = Pᵀ g and dk = scale dSᵀ q. Heads that share the keys follow each other.
#include "attention/sm_90a/gradient_block.h"

namespace sgtc::kernels {
namespace {

using namespace sgtc::hopper;

template <AttentionGradientForm Form, bool Masked>
class KeyGradient : GradientBlock<Form, 2, Masked> {
 public:
  SGTC_METHOD KeyGradient(const AttentionSm90aShape& shape, void* const* args,
                          const AttentionGradientSm90aTensors& tensors)
      : shape_(shape), args_(args), tensors_(tensors) {}

  SGTC_METHOD void run() {
    const uint32_t warpgroup = of_first_lane(thread_index() / kWarpgroupThreads);
    this->initialize_barriers();
    if (warpgroup == 0) {
      shrink_registers<Form.producer_registers>();
      if (thread_index() == 0) produce();
      return;
    }
    grow_registers<Form.consumer_registers>();
    if (warpgroup == 1) consume<0>();
    if (warpgroup == 2) consume<1>();
  }

 private:
  using Block = GradientBlock<Form, 2, Masked>;
  using typename Block::OwnRing;
  using typename Block::Ring;
  using typename Block::Scores;
  using typename Block::Sums;
  using typename Block::Weights;

  /// The first tile of queries that keys from `key` on serve.
  SGTC_METHOD uint32_t first_tile(uint32_t key) const {
    const uint32_t tile = shape_.causal != 0 ? key / kAttentionRows : 0;
    return tile < tiles_ ? tile : tiles_;
  }
  SGTC_METHOD uint32_t first_tile_of(const AttentionItem& work) const {
    return first_tile(work.group * kGradientConsumers * kAttentionRows);
  }

  SGTC_METHOD void produce() const {
    Ring ring;
    OwnRing owns;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const AttentionItem work = attention_item(tensors_.items, round);
      if (work.is_work == 0) break;
      for (uint32_t consumer = 0; consumer < kGradientConsumers; ++consumer) {
        fill_own(owns, consumer, work, round);
      }
      owns.advance();
      for (uint32_t head = 0; head < shared_heads_; ++head) {
        for (uint32_t tile = first_tile_of(work); tile < tiles_; ++tile) {
          fill(ring, work.batch, work.key_head * shared_heads_ + head, tile);
          ring.advance();
        }
      }
    }
  }

  SGTC_METHOD void fill_own(const OwnRing& owns, uint32_t consumer, const AttentionItem& work,
                            uint32_t round) const {
    const uint32_t set = owns.stage * kGradientConsumers + consumer;
    const uint32_t full = this->own_full(set);
    const uint32_t key = first_row_of_consumer<kGradientConsumers>(work, consumer, round);
    wait_for(this->own_empty(set), owns.parity ^ 1);
    arrive_and_expect(full, 2 * Block::kTileBytes);
    copy_rows<Form.size>(this->own(set, 0), kBoxBytes, tensors_.k, key, work.key_head, work.batch,
                         full);
    copy_rows<Form.size>(this->own(set, 1), kBoxBytes, tensors_.v, key, work.key_head, work.batch,
                         full);
  }

  SGTC_METHOD void fill(const Ring& ring, uint32_t batch, uint32_t head, uint32_t tile) const {
    const uint32_t full = this->full(ring.stage);
    const uint32_t query = tile * kAttentionRows;
    const uint64_t rows =
        static_cast<uint64_t>(batch * shape_.heads + head) * tiles_ * kAttentionRows + query;
    wait_for(this->empty(ring.stage), ring.parity ^ 1);
    arrive_and_expect(full, 2 * Block::kTileBytes + Block::kTermBytes);
    copy_rows<Form.size>(this->passing(ring.stage, 0), kBoxBytes, tensors_.q, query, head, batch,
                         full);
    copy_rows<Form.size>(this->passing(ring.stage, 1), kBoxBytes, tensors_.gradient, query, head,
                         batch, full);
    copy_bytes(this->terms(ring.stage), tensors_.terms + attention_terms(Masked) * rows,
               Block::kTermBytes, full);
  }

  template <uint32_t Consumer>
  SGTC_METHOD void consume() const {
    uint32_t position = 0;
    OwnRing owns;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const AttentionItem work = attention_item(tensors_.items, round);
      if (work.is_work == 0) break;
      const uint32_t key = first_row_of_consumer<kGradientConsumers>(work, Consumer, round);
      const uint32_t all = tiles_ - first_tile_of(work);
      const uint32_t own = tiles_ - first_tile(key);
      const uint32_t set = owns.stage * kGradientConsumers + Consumer;
      wait_for(this->own_full(set), owns.parity);
      Sums dk, dv;
      clear(dk);
      clear(dv);
      for (uint32_t head = 0; head < shared_heads_; ++head) {
        this->skip_tiles(position, all - own);
        if (own > 0) {
          const HeadMask mask(shape_, tensors_.mask, work.batch,
                              work.key_head * shared_heads_ + head);
          add_tiles(Ring::at(position + all - own), set, {key, first_tile(key) * kAttentionRows},
                    own, dk, dv, mask);
        }
        position += all;
      }
      release(this->own_empty(set));
      owns.advance();
      store<Consumer>(round, dk, dv);
    }
  }

  SGTC_DEVICE void clear(Sums& sums) {
#pragma clang loop unroll(full)
    for (float& sum : sums) sum = 0;
    tie(sums);  // else LLVM sets the registers between the fence and the first product
  }

  /// Where a tile of scores begins.
  struct Place {
    uint32_t key, query;
  };

  SGTC_METHOD void add_tiles(Ring ring, uint32_t set, Place place, uint32_t tiles, Sums& dk,
                             Sums& dv, const HeadMask& mask) const {
    Scores scores, products;
    Weights weights, gradients;
    wait_for(this->full(ring.stage), ring.parity);
    begin_products();
    this->start_scores(scores, products, set, ring.stage);
    wait_for_products<0>();
    tie(scores);
    tie(products);
    differentiate<true>(scores, products, ring.stage, mask, place);
    pack_weights(scores, weights);
    pack_weights(products, gradients);
    uint32_t previous = ring.stage;
    for (uint32_t tile = 1; tile < tiles; ++tile) {
      ring.advance();
      place.query += kAttentionRows;
      if constexpr (kOverlaps) {
        next_overlapped(ring, set, previous, scores, products, weights, gradients, dk, dv, mask,
                        place);
      } else {
        next(ring, set, previous, scores, products, weights, gradients, dk, dv, mask, place);
      }
      previous = ring.stage;
    }
    add_sums(previous, weights, gradients, dk, dv);
  }

  // The sums of heads of 128 elements, or what a mask needs, leave no registers for more than one
  // step at a time.
  static constexpr bool kOverlaps = Form.size == 64 && !Masked;

  SGTC_METHOD void next(const Ring& ring, uint32_t set, uint32_t previous, Scores& scores,
                        Scores& products, Weights& weights, Weights& gradients, Sums& dk, Sums& dv,
                        const HeadMask& mask, const Place& place) const {
    add_sums(previous, weights, gradients, dk, dv);
    wait_for(this->full(ring.stage), ring.parity);
    begin_products();
    this->start_scores(scores, products, set, ring.stage);
    wait_for_products<0>();
    tie(scores);
    tie(products);
    differentiate<false>(scores, products, ring.stage, mask, place);
    pack_weights(scores, weights);
    pack_weights(products, gradients);
  }

  SGTC_METHOD void next_overlapped(const Ring& ring, uint32_t set, uint32_t previous,
                                   Scores& scores, Scores& products, Weights& weights,
                                   Weights& gradients, Sums& dk, Sums& dv, const HeadMask& mask,
                                   const Place& place) const {
    wait_for(this->full(ring.stage), ring.parity);
    begin_products();
    this->start_scores(scores, products, set, ring.stage);
    start_sums_of(previous, weights, gradients, dk, dv);
    wait_for_products<1>();
    tie(scores);
    tie(products);
    differentiate<false>(scores, products, ring.stage, mask, place);
    tie(scores);
    tie(products);
    // Already over; its branch keeps ptxas from moving the next wait above the arithmetic.
    wait_for(this->full(ring.stage), ring.parity);
    wait_for_products<0>();
    tie(dk);
    tie(dv);
    release(this->empty(previous));
    pack_weights(scores, weights);
    pack_weights(products, gradients);
  }

  SGTC_METHOD void start_sums_of(uint32_t stage, const Weights& weights, const Weights& gradients,
                                 Sums& dk, Sums& dv) const {
    this->template start_sums<1>(dv, weights, stage, true);
    this->template start_sums<0>(dk, gradients, stage, true);
    commit_products();
  }

  SGTC_METHOD void add_sums(uint32_t stage, const Weights& weights, const Weights& gradients,
                            Sums& dk, Sums& dv) const {
    begin_products();
    start_sums_of(stage, weights, gradients, dk, dv);
    wait_for_products<0>();
    tie(dk);
    tie(dv);
    release(this->empty(stage));
  }

  // Scores become weights, and products the gradients of scores. Rows are keys, columns queries;
  // the consumer's first tile holds the diagonal of a causal attention.
  template <bool First>
  SGTC_METHOD void differentiate(Scores& scores, Scores& products, uint32_t stage,
                                 const HeadMask& mask, const Place& place) const {
    const float factor = Masked ? kLog2E : static_cast<float>(shape_.scale) * kLog2E;
    const bool hides = First && shape_.causal != 0;
    const uint32_t first_column = thread_index_again() % 4 * 2;
    const uint32_t row = first_row_of_thread();
#pragma clang loop unroll(full)
    for (uint32_t part = 0; part < kAttentionRows / 8; ++part) {
      float maximum[2] = {0, 0}, log[2], sum[2];
      const uint32_t column = 8 * part + first_column;
      if constexpr (Masked) {
        float unused;
        load_shared(this->terms(stage) + column * 16, maximum[0], log[0], sum[0], unused);
        load_shared(this->terms(stage) + column * 16 + 16, maximum[1], log[1], sum[1], unused);
      } else {
        load_shared(this->terms(stage) + column * 8, log[0], sum[0], log[1], sum[1]);
      }
#pragma clang loop unroll(full)
      for (uint32_t i = 0; i < 4; ++i) {
        float& score = scores[4 * part + i];
        float& product = products[4 * part + i];
        const bool is_hidden = hides && column + i % 2 < row + i / 2 * 8;
        // Hidden here and not below: for whatever reason, ptxas serialises products otherwise.
        if constexpr (Masked) {
          float added = mask.at(place.query + column + i % 2, place.key + row + i / 2 * 8);
          if (is_hidden) added = -__builtin_inff();
          score = __builtin_fmaf(score, static_cast<float>(shape_.scale), added) - maximum[i % 2];
        }
        score = exp2_approximate(__builtin_fmaf(score, factor, -log[i % 2]));
        if (!Masked && is_hidden) score = 0;
        product = score * (product - sum[i % 2]);
      }
    }
  }

  template <uint32_t Consumer>
  SGTC_METHOD void store(uint32_t round, Sums& dk, const Sums& dv) const {
    const AttentionItem work = attention_item(tensors_.items, round);
    const uint32_t key = first_row_of_consumer<kGradientConsumers>(work, Consumer, round);
    const uint32_t key_heads = static_cast<uint32_t>(shape_.heads) / shared_heads_;
    const uint32_t head = work.batch * key_heads + work.key_head;
    const StoredRows keys = {head, static_cast<uint32_t>(shape_.keys),
                             static_cast<uint32_t>(shape_.key_size)};
    const StoredRows values = {head, keys.rows, static_cast<uint32_t>(shape_.value_size)};
    scale_rows(dk, static_cast<float>(shape_.scale), static_cast<float>(shape_.scale));
    store_rows(sgtc_tile_store, args_, keys, key, this->staging(Consumer), dk);
    store_rows(sgtc_tile_store_second, args_, values, key, this->staging(Consumer), dv);
  }

  const AttentionSm90aShape& shape_;
  void* const* args_;
  const AttentionGradientSm90aTensors& tensors_;
  const uint32_t rounds_ = static_cast<uint32_t>(shape_.rounds);
  const uint32_t tiles_ =
      (static_cast<uint32_t>(shape_.queries) + kAttentionRows - 1) / kAttentionRows;
  const uint32_t shared_heads_ =
      static_cast<uint32_t>(shape_.heads) / static_cast<uint32_t>(shape_.key_heads);
};

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_KEY_GRADIENT(name, form, masked)                                               \
  extern "C" __attribute__((always_inline)) void sgtc_attention_sm_90a_key_gradient_##name( \
      const sgtc::kernels::AttentionSm90aShape* shape, void* const* args,                   \
      const sgtc::kernels::AttentionGradientSm90aTensors* tensors) {                        \
    sgtc::kernels::KeyGradient<sgtc::kernels::form, masked>(*shape, args, *tensors).run();  \
  }
SGTC_KEY_GRADIENT(d64, kKeyGradient64, false)
SGTC_KEY_GRADIENT(d128, kKeyGradient128, false)
SGTC_KEY_GRADIENT(d64_masked, kKeyGradient64, true)
SGTC_KEY_GRADIENT(d128_masked, kKeyGradient128, true)
