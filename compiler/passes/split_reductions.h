#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Splits reductions that have little parallelism into two stages.
///
/// A reduce_sum, max, min or prod over adjacent dimensions with more than 65536 reduced elements
/// and fewer than 64 results becomes a reduction of chunks followed by a reduction over the chunks,
/// so that threads and blocks can share the first. The chunk size depends on the shape alone, so
/// the bits of the result do not depend on the machine or on what is fused. Runs after gradients
/// and the optimizer exist and before fusion.
Graph split_reductions(const Graph& graph);

}  // namespace sgtc
