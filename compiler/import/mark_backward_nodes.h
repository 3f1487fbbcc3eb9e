// Which nodes of a graph with given gradients are its backward phase.
#pragma once

#include <vector>

#include "import/given_gradients.h"
#include "ir/graph.h"

namespace sgtc {

/// Moves the forward nodes that only outputs named as gradients need to the backward phase.
void mark_backward_nodes(Graph& graph, const std::vector<NamedGradient>& gradients);

}  // namespace sgtc
