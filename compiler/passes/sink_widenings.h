#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Moves casts to a wider float type behind the movements that follow them, and drops them where
/// the result is narrowed again. Exact; movements then move fewer bytes, and what only moves values
/// of a narrow type is seen to do so.
Graph sink_widenings(Graph graph);

}  // namespace sgtc
