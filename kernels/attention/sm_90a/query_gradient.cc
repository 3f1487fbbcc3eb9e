// The gradient of attention with respect to the queries, on Hopper's tensor cores; launch.h is the
// contract.
//
// With scores S = scale q kᵀ + mask, weights P = exp(S - maximum) / sum and the output's gradient
// g,
//   dS = P (g vᵀ - D) where D = sum of g times output over a row, and dq = scale dS k.
// The weights are computed again instead of kept (Dao et al., FlashAttention, 2022). The gradient
// is split into two kernels that each own what they add up, queries here and keys in
// key_gradient.cc: seven products instead of five, but no atomic additions, so the same bits in
// every run, and dS and P never leave the registers.
//
// The structure is that of forward.cc: the scores of the next tile of keys are started before the
// product with this one.
#include "attention/sm_90a/gradient_block.h"

namespace sgtc::kernels {
namespace {

using namespace sgtc::hopper;

template <AttentionGradientForm Form, bool Masked>
class QueryGradient : GradientBlock<Form, 3, Masked> {
 public:
  SGTC_METHOD QueryGradient(const AttentionSm90aShape& shape, void* const* args,
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
  using Block = GradientBlock<Form, 3, Masked>;
  using typename Block::OwnRing;
  using typename Block::Ring;
  using typename Block::Scores;
  using typename Block::Sums;
  using typename Block::Weights;

  /// Of two rows of a thread: log2(e) maximum + log2(sum), and D. With a mask the maximum is apart.
  struct RowTerms {
    float maximum[2];
    float log[2];
    float sum[2];
  };

  SGTC_METHOD uint32_t tiles_until(uint32_t last) const {
    const uint32_t tiles =
        (static_cast<uint32_t>(shape_.keys) + kAttentionRows - 1) / kAttentionRows;
    const uint32_t needed = last / kAttentionRows + 1;
    return shape_.causal != 0 && needed < tiles ? needed : tiles;
  }
  SGTC_METHOD uint32_t tiles_of(const AttentionItem& work) const {
    return tiles_until((work.group + 1) * kGradientConsumers * kAttentionRows - 1);
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
      for (uint32_t tile = tiles_of(work); tile-- > 0;) {
        const uint32_t full = this->full(ring.stage);
        wait_for(this->empty(ring.stage), ring.parity ^ 1);
        arrive_and_expect(full, 2 * Block::kTileBytes);
        copy_rows<Form.size>(this->passing(ring.stage, 0), kBoxBytes, tensors_.k,
                             tile * kAttentionRows, work.key_head, work.batch, full);
        copy_rows<Form.size>(this->passing(ring.stage, 1), kBoxBytes, tensors_.v,
                             tile * kAttentionRows, work.key_head, work.batch, full);
        ring.advance();
      }
    }
  }

  SGTC_METHOD void fill_own(const OwnRing& owns, uint32_t consumer, const AttentionItem& work,
                            uint32_t round) const {
    const uint32_t set = owns.stage * kGradientConsumers + consumer;
    const uint32_t full = this->own_full(set);
    const uint32_t query = first_row_of_consumer<kGradientConsumers>(work, consumer, round);
    wait_for(this->own_empty(set), owns.parity ^ 1);
    arrive_and_expect(full, 3 * Block::kTileBytes);
    copy_rows<Form.size>(this->own(set, 0), kBoxBytes, tensors_.q, query, work.head, work.batch,
                         full);
    copy_rows<Form.size>(this->own(set, 1), kBoxBytes, tensors_.gradient, query, work.head,
                         work.batch, full);
    copy_rows<Form.size>(this->own(set, 2), kBoxBytes, tensors_.output, query, work.head,
                         work.batch, full);
  }

  template <uint32_t Consumer>
  SGTC_METHOD void consume() const {
    uint32_t position = 0;
    OwnRing owns;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const AttentionItem work = attention_item(tensors_.items, round);
      if (work.is_work == 0) break;
      const uint32_t query = first_row_of_consumer<kGradientConsumers>(work, Consumer, round);
      const uint32_t head = work.batch * static_cast<uint32_t>(shape_.heads) + work.head;
      const uint32_t tiles = tiles_until(query + kAttentionRows - 1);
      const uint32_t all = tiles_of(work);
      this->skip_tiles(position, all - tiles);
      const uint32_t set = owns.stage * kGradientConsumers + Consumer;
      wait_for(this->own_full(set), owns.parity);
      const RowTerms terms = row_terms<Consumer>(set, head, query);
      Sums sums;
      add_tiles(Ring::at(position + all - tiles), set, query, tiles, terms, sums,
                HeadMask(shape_, tensors_.mask, work.batch, work.head));
      release(this->own_empty(set));
      scale_rows(sums, static_cast<float>(shape_.scale), static_cast<float>(shape_.scale));
      const StoredRows stored = {head, static_cast<uint32_t>(shape_.queries),
                                 static_cast<uint32_t>(shape_.key_size)};
      store_rows(sgtc_tile_store, args_, stored, query, this->staging(Consumer), sums);
      position += all;
      owns.advance();
    }
  }

  // Computes the terms of 64 rows, two threads per row, and hands them to the second kernel and to
  // the threads that hold the rows.
  template <uint32_t Consumer>
  SGTC_METHOD RowTerms row_terms(uint32_t set, uint32_t head, uint32_t query) const {
    const uint32_t thread = thread_index() % kWarpgroupThreads;
    const uint32_t row = thread / 2;
    const auto queries = static_cast<uint32_t>(shape_.queries);
    const uint32_t padded = (queries + kAttentionRows - 1) / kAttentionRows * kAttentionRows;
    const float sum = half_row_product(set, row, thread % 2);
    const float total = sum + of_lane_xor(sum, 1);
    if (thread % 2 == 0) {
      const uint32_t at = query + row;
      float maximum = 0, log = __builtin_inff();
      if (at < queries) {
        const uint64_t place = static_cast<uint64_t>(head) * queries + at;
        maximum = tensors_.maximum[place];
        log = log2_approximate(tensors_.sum[place]);
        if (!Masked) log = __builtin_fmaf(maximum, kLog2E, log);
      }
      float* to = at < padded ? tensors_.terms + (static_cast<uint64_t>(head) * padded + at) *
                                                     attention_terms(Masked)
                              : nullptr;
      hand_over(this->terms(Consumer) + kRowTermBytes * row, to, maximum, log, total);
    }
    synchronize(1 + Consumer, kWarpgroupThreads);
    RowTerms terms;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t from = this->terms(Consumer) + kRowTermBytes * (first_row_of_thread() + 8 * i);
      if constexpr (Masked) {
        float unused;
        load_shared(from, terms.maximum[i], terms.log[i], terms.sum[i], unused);
      } else {
        load_shared(from, terms.log[i], terms.sum[i]);
      }
    }
    return terms;
  }

  SGTC_DEVICE void hand_over(uint32_t shared, float* global, float maximum, float log, float sum) {
    if constexpr (Masked) {
      store_shared(shared, maximum, log);
      store_shared(shared + 8, sum, 0);
      if (global != nullptr) store_global(global, maximum, log, sum, 0);
    } else {
      store_shared(shared, log, sum);
      if (global != nullptr) {
        global[0] = log;
        global[1] = sum;
      }
    }
  }

  // Half of the sum of a row of the output times its gradient. Both are swizzled alike, so units of
  // 16 bytes at the same place belong together; each row starts at another one to spread banks.
  SGTC_METHOD float half_row_product(uint32_t set, uint32_t row, uint32_t half) const {
    float sum = 0;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < Form.size / 16; ++i) {
      const uint32_t unit = (4 * half + i % 4) ^ (row % 8);
      const uint32_t at = i / 4 * kBoxBytes + row * kRowBytes + 16 * unit;
      uint32_t x[4], y[4];
      load_shared(this->own(set, 1) + at, x);
      load_shared(this->own(set, 2) + at, y);
#pragma clang loop unroll(full)
      for (int word = 0; word < 4; ++word) sum += pair_product(x[word], y[word]);
    }
    return sum;
  }
  SGTC_DEVICE float pair_product(uint32_t x, uint32_t y) {
    const auto low = [](uint32_t pair)
                         SGTC_LAMBDA { return __builtin_bit_cast(float, pair << 16); };
    const auto high = [](uint32_t pair)
                          SGTC_LAMBDA { return __builtin_bit_cast(float, pair & 0xffff0000); };
    return __builtin_fmaf(low(x), low(y), high(x) * high(y));
  }

  SGTC_METHOD void add_tiles(Ring ring, uint32_t set, uint32_t query, uint32_t tiles,
                             const RowTerms& terms, Sums& sums, const HeadMask& head_mask) const {
    Scores scores, products;
    Weights weights;
    wait_for(this->full(ring.stage), ring.parity);
    begin_products();
    this->start_scores(scores, products, set, ring.stage);
    wait_for_products<0>();
    tie(scores);
    tie(products);
    add_mask(scores, head_mask, query, tiles - 1);
    hide(scores, query, tiles - 1);
    differentiate(scores, products, terms);
    pack_weights(scores, weights);
    uint32_t previous = ring.stage;
    for (uint32_t tile = 1; tile < tiles; ++tile) {
      ring.advance();
      wait_for(this->full(ring.stage), ring.parity);
      begin_products();
      this->start_scores(scores, products, set, ring.stage);
      this->template start_sums<0>(sums, weights, previous, tile > 1);
      commit_products();
      wait_for_products<1>();
      tie(scores);
      tie(products);
      add_mask(scores, head_mask, query, tiles - 1 - tile);
      differentiate(scores, products, terms);
      tie(scores);
      // Already over; its branch keeps ptxas from moving the next wait above the arithmetic.
      wait_for(this->full(ring.stage), ring.parity);
      wait_for_products<0>();
      tie(sums);
      release(this->empty(previous));
      pack_weights(scores, weights);
      previous = ring.stage;
    }
    begin_products();
    this->template start_sums<0>(sums, weights, previous, tiles > 1);
    commit_products();
    wait_for_products<0>();
    tie(sums);
    release(this->empty(previous));
  }

  SGTC_METHOD void add_mask(Scores& scores, const HeadMask& head_mask, uint32_t query,
                            uint32_t tile) const {
    if constexpr (Masked) {
      add_mask_of_keys(scores, head_mask, query + first_row_of_thread(),
                       tile * kAttentionRows + thread_index() % 4 * 2,
                       static_cast<float>(shape_.scale));
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
    mask_scores(scores, tile * kAttentionRows + thread_index() % 4 * 2, limit);
  }

  // Scores become their gradient.
  SGTC_METHOD void differentiate(Scores& scores, const Scores& products,
                                 const RowTerms& terms) const {
    const float factor = Masked ? kLog2E : static_cast<float>(shape_.scale) * kLog2E;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kAttentionRows / 2; ++i) {
      const uint32_t row = i / 2 % 2;
      const float score = Masked ? scores[i] - terms.maximum[row] : scores[i];
      const float weight = exp2_approximate(__builtin_fmaf(score, factor, -terms.log[row]));
      scores[i] = weight * (products[i] - terms.sum[row]);
    }
  }

  const AttentionSm90aShape& shape_;
  void* const* args_;
  const AttentionGradientSm90aTensors& tensors_;
  const uint32_t rounds_ = static_cast<uint32_t>(shape_.rounds);
  static constexpr uint32_t kRowTermBytes = attention_terms(Masked) * sizeof(float);
};

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_QUERY_GRADIENT(name, form, masked)                                               \
  extern "C" __attribute__((always_inline)) void sgtc_attention_sm_90a_query_gradient_##name( \
      const sgtc::kernels::AttentionSm90aShape* shape, void* const* args,                     \
      const sgtc::kernels::AttentionGradientSm90aTensors* tensors) {                          \
    sgtc::kernels::QueryGradient<sgtc::kernels::form, masked>(*shape, args, *tensors).run();  \
  }
SGTC_QUERY_GRADIENT(d64, kQueryGradient64, false)
SGTC_QUERY_GRADIENT(d128, kQueryGradient128, false)
SGTC_QUERY_GRADIENT(d64_masked, kQueryGradient64, true)
SGTC_QUERY_GRADIENT(d128_masked, kQueryGradient128, true)
