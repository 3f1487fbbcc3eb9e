// Lets nodes of the forward phase run again in the backward phase.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// `graph` with a copy of each node in `again` (indexed by node; forward nodes) in the backward
/// phase, directly before the first node there that needs one of its results. All nodes of the
/// backward phase then read the copy's results; so do copies. What a copy reads and no copy makes
/// is read from the forward phase and thereby kept. Reshapes between copies are copied as needed. A
/// copy has attributes, id and sources of its node, hence the same random numbers and the same
/// bits. Copies that nobody needs are not made.
///
/// Runs directly before fusion: equal nodes must not be merged after it.
Graph rerun_nodes(const Graph& graph, const std::vector<bool>& again);

}  // namespace sgtc
