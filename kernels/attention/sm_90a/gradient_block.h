// What both kernels of the gradient of attention for sm_90a share: a consumer's own tiles of 64
// rows and a ring of pairs of tiles of 64 rows that pass by, in shared memory.
#pragma once

#include "attention/sm_90a/block.h"
#include "attention/sm_90a/mask.h"
#include "attention/sm_90a/softmax.h"

namespace sgtc::kernels {

/// Addresses and barriers. `Own` tiles belong to a consumer.
template <AttentionGradientForm Form, uint32_t Own, bool Masked>
class GradientBlock {
 public:
  static constexpr uint32_t kTileBytes = Form.size / 64 * hopper::kBoxBytes;
  static constexpr uint32_t kTermBytes = attention_term_bytes(Masked);
  static constexpr uint32_t kOwnSets = Form.buffers * kGradientConsumers;
  using Ring = hopper::RingPosition<Form.stages>;
  using OwnRing = hopper::RingPosition<Form.buffers>;
  using Scores = float[kAttentionRows / 2];
  using Weights = uint32_t[kAttentionRows / 4];
  using Sums = float[Form.size / 2];

  /// Tile `which` (0 or 1) of a pair of the ring.
  SGTC_METHOD uint32_t passing(uint32_t stage, uint32_t which) const {
    return begin_ + (2 * stage + which) * kTileBytes;
  }
  SGTC_METHOD uint32_t own(uint32_t set, uint32_t which) const {
    return passing(Form.stages, 0) + (Own * set + which) * kTileBytes;
  }
  SGTC_METHOD uint32_t staging(uint32_t consumer) const {
    return own(kOwnSets, 0) + 4 * consumer * hopper::kStagingBytes;
  }
  SGTC_METHOD uint32_t terms(uint32_t stage) const {
    return staging(kGradientConsumers) + stage * kTermBytes;
  }
  SGTC_METHOD uint32_t full(uint32_t stage) const { return terms(Form.stages) + 8 * stage; }
  SGTC_METHOD uint32_t empty(uint32_t stage) const { return full(Form.stages + stage); }
  SGTC_METHOD uint32_t own_full(uint32_t set) const { return full(2 * Form.stages + set); }
  SGTC_METHOD uint32_t own_empty(uint32_t set) const { return own_full(kOwnSets + set); }

  SGTC_METHOD void initialize_barriers() const {
    if (hopper::thread_index() == 0) {
      for (uint32_t stage = 0; stage < Form.stages; ++stage) {
        hopper::initialize_barrier(full(stage), 1);
        hopper::initialize_barrier(empty(stage), kGradientConsumers);
      }
      for (uint32_t set = 0; set < 2 * kOwnSets; ++set) {
        hopper::initialize_barrier(own_full(set), 1);
      }
      hopper::publish_barriers();
    }
    hopper::synchronize(0, (kGradientConsumers + 1) * hopper::kWarpgroupThreads);
  }

  /// The leader waits for and releases tiles that only the other consumer needs (forward.cc).
  SGTC_METHOD void skip_tiles(uint32_t position, uint32_t count) const {
    if (!is_leader()) return;
    for (uint32_t i = 0; i < count; ++i) {
      const Ring ring = Ring::at(position + i);
      hopper::wait_for(full(ring.stage), ring.parity);
      hopper::arrive_at(empty(ring.stage));
    }
  }

  /// Starts scores = own 0 · passing 0 and products = own 1 · passing 1 over the head's elements.
  SGTC_METHOD void start_scores(Scores& scores, Scores& products, uint32_t set,
                                uint32_t stage) const {
    const uint64_t at = stage * (2 * kTileBytes / 16);
    multiply_heads<Form.size, kAttentionRows>(
        scores, hopper::operand_descriptor<false>(own(set, 0)),
        hopper::operand_descriptor<false>(passing(0, 0)) + at);
    multiply_heads<Form.size, kAttentionRows>(
        products, hopper::operand_descriptor<false>(own(set, 1)),
        hopper::operand_descriptor<false>(passing(0, 1)) + at);
    hopper::commit_products();
  }

  /// Starts sums = (accumulate ? sums : 0) + weights · passing tile `which`.
  template <uint32_t Which>
  SGTC_METHOD void start_sums(Sums& sums, const Weights& weights, uint32_t stage,
                              bool accumulate) const {
    multiply_weights<kAttentionRows>(
        sums, weights,
        hopper::operand_descriptor<true>(passing(0, Which)) + stage * (2 * kTileBytes / 16),
        accumulate);
  }

 private:
  const uint32_t begin_ = hopper::shared_memory_begin();
};

}  // namespace sgtc::kernels
