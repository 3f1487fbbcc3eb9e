#pragma once

#include "ir/graph.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Opens softmax, log_softmax and normalize into elementwise operators and reductions that fuse
/// with their neighbours. Runs when gradients exist, whose rules need them whole.
///
/// Stable forms: the maximum is subtracted before exp, and the variance is the mean of the centred
/// squares (never E[x^2] - E[x]^2). f16 and bf16 operands are widened to f32 inside, so only the
/// results are rounded.
///
/// Attention follows the operator: scores = scale * q k^T + mask, with key position s visible to
/// query t only if s <= t when causal; query heads that share a key head are rows of one product.
/// It and its gradient are opened where `target` has no kernel (attention_support.h), and the
/// gradient becomes two halves where it has those.
Graph expand_compositions(Graph graph, const KernelTarget& target = kCpuTarget);

}  // namespace sgtc
