// The gradient of attention with respect to the queries, on Hopper's tensor cores; launch.h is the
// contract.
//
// With scores S = scale q kᵀ, weights P = exp(S - log_sum_exp) and the output's gradient g,
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

template <AttentionGradientForm Form>
class QueryGradient : GradientBlock<Form, 3> {
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
  using Block = GradientBlock<Form, 3>;
  using typename Block::OwnRing;
  using typename Block::Ring;
  using typename Block::Scores;
  using typename Block::Sums;
  using typename Block::Weights;

  /// Of two rows of a thread: log2(e) times log_sum_exp, and D.
  struct RowTerms {
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
      add_tiles(Ring::at(position + all - tiles), set, query, tiles, terms, sums);
      release(this->own_empty(set));
      scale_rows(sums, static_cast<float>(shape_.scale), static_cast<float>(shape_.scale));
      store_rows(sgtc_tile_store, args_, head, query, static_cast<uint32_t>(shape_.queries),
                 this->staging(Consumer), sums);
      position += all;
      owns.advance();
    }
  }

  // Computes the statistics of 64 rows, two threads per row, and hands them to the second kernel
  // and to the threads that hold the rows.
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
      float log = __builtin_inff();
      if (at < queries) {
        log = tensors_.log_sum_exp[static_cast<uint64_t>(head) * queries + at] * 1.44269504089f;
      }
      store_shared(this->statistics(Consumer) + 8 * row, log, total);
      if (at < padded) {
        float* to = tensors_.statistics + (static_cast<uint64_t>(head) * padded + at) * 2;
        to[0] = log;
        to[1] = total;
      }
    }
    synchronize(1 + Consumer, kWarpgroupThreads);
    RowTerms terms;
    const uint32_t own_row = first_row_of_thread();
    load_shared(this->statistics(Consumer) + 8 * own_row, terms.log[0], terms.sum[0]);
    load_shared(this->statistics(Consumer) + 8 * (own_row + 8), terms.log[1], terms.sum[1]);
    return terms;
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
                             const RowTerms& terms, Sums& sums) const {
    Scores scores, products;
    Weights weights;
    wait_for(this->full(ring.stage), ring.parity);
    begin_products();
    this->start_scores(scores, products, set, ring.stage);
    wait_for_products<0>();
    tie(scores);
    tie(products);
    mask(scores, query, tiles - 1);
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

  SGTC_METHOD void mask(Scores& scores, uint32_t query, uint32_t tile) const {
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
    const float factor = static_cast<float>(shape_.scale) * 1.44269504089f;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kAttentionRows / 2; ++i) {
      const uint32_t row = i / 2 % 2;
      const float weight = exp2_approximate(__builtin_fmaf(scores[i], factor, -terms.log[row]));
      scores[i] = weight * (products[i] - terms.sum[row]);
    }
  }

  const AttentionSm90aShape& shape_;
  void* const* args_;
  const AttentionGradientSm90aTensors& tensors_;
  const uint32_t rounds_ = static_cast<uint32_t>(shape_.rounds);
};

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_QUERY_GRADIENT(name, form)                                                       \
  extern "C" __attribute__((always_inline)) void sgtc_attention_sm_90a_query_gradient_##name( \
      const sgtc::kernels::AttentionSm90aShape* shape, void* const* args,                     \
      const sgtc::kernels::AttentionGradientSm90aTensors* tensors) {                          \
    sgtc::kernels::QueryGradient<sgtc::kernels::form>(*shape, args, *tensors).run();          \
  }
SGTC_QUERY_GRADIENT(d64, kQueryGradient64)
SGTC_QUERY_GRADIENT(d128, kQueryGradient128)
