#pragma once

#include "ir/graph.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Lets readers compute cheap values again instead of reading them from memory.
///
/// A value in memory is written once and read by every kernel that uses it. Where it is a chain of
/// elementwise operators on values that are in memory anyway and have no more bytes, each reader
/// can have the chain to itself: fusion then finds it inside of the reader's kernel, and the value
/// is never stored. So the backward phase keeps a GELU's bf16 operand and not the f32 values that
/// its derivative is made of, and a cross-entropy's gradient reads scores and row statistics.
///
/// Readers of the backward phase get their own chain for values of the forward phase; inside of a
/// phase readers do where the chain's operands have fewer bytes, such as a bf16 tensor that is cast
/// to f32. Contractions and other written kernels read what is in memory. Values keep their bits.
/// On a GPU memory costs more than any of these operators; on a CPU a chain may cost no more than
/// writing and reading the value. Runs before fusion and after equal values were merged, which
/// would undo it. What nobody reads any more is left in the graph.
Graph recompute_elementwise(Graph graph, const KernelTarget& target);

}  // namespace sgtc
