#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Lets gradients of embeddings be added to their accumulators row by row, as Op::kAccumulateRows:
/// what would be scattered into a table of zeros first, and the whole table then added, in each
/// micro-batch. A row's terms are added to the accumulator one after the other, which rounds
/// otherwise than adding their sum.
Graph accumulate_rows(Graph graph);

}  // namespace sgtc
