#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Removes nodes, constants, controls, moments and accumulators that no output and no update needs.
/// Feeds stay, since the program's user gives them, and so do parameters, frozen parameters and
/// statistics, since they are saved.
Graph eliminate_dead_nodes(Graph graph);

}  // namespace sgtc
