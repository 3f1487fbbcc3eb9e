// Data parallelism: one program for every replica.
#pragma once

#include <cstdint>

#include "autodiff/differentiate.h"

namespace sgtc {

/// What replicas do not hold whole.
enum class Sharding : uint8_t { kNone, kOptimizer };

inline constexpr int64_t kShardAlignment = 256;  // bytes; of vectors, and of buffers of NCCL
inline constexpr int64_t kLeastShardBytes = 4096;

/// Inserts the collectives through which the replicas of `source` (`graph.replicas` of them) act as
/// one: each works on micro-batches of its own, and every replica computes the same update. Runs
/// between `differentiate` and `add_optimizer`; `separate_loss` has made loss and gradients plain
/// sums over micro-batches and replicas.
/// - A denominator of the loss is all-reduced in the prologue, after its accumulation.
/// - Each use of a parameter that contributes to its gradient is all-reduced on its own, in the
///   update phase. A parameter without gradient has no collective. Uses are reduced before they
///   are added, so that bits do not depend on which pipeline stages compute them.
/// - The loss, outputs[0], is all-reduced in the update phase.
/// - Rows of stacked micro-batches are gathered in the order of the global micro-batch.
///
/// With one replica the source is returned as it is.
///
/// With `Sharding::kOptimizer` (ZeRO's first stage, arXiv:1910.02054) each replica gets one shard
/// of the sum of a gradient use, by a reduce-scatter, so that `add_optimizer` keeps moments of that
/// shard alone, updates it and gathers the parameter. Parameters that do not divide into shards of
/// a multiple of kShardAlignment bytes, kLeastShardBytes at least, stay whole.
Differentiated replicate(Differentiated source, Sharding sharding = Sharding::kNone);

}  // namespace sgtc
