// Data parallelism: one program for every replica.
#pragma once

#include <cstdint>

#include "autodiff/differentiate.h"

namespace sgtc {

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
Differentiated replicate(const Differentiated& source);

}  // namespace sgtc
