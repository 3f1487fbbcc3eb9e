#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Computes equal nodes once: same operator, operands, attributes and phase. The node that stays
/// gets the sources of those that go. Equal constants of at most 16 MiB count as one. Random
/// numbers, accumulate and stack_micro_batches are left alone, and a backward node never uses an
/// equal forward one, which would keep the forward value alive: that choice is recompute's.
Graph eliminate_common_subexpressions(Graph graph);

}  // namespace sgtc
