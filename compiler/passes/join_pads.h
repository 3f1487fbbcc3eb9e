#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Turns sums of tensors that are padded with zeros, each where the others are not, into their
/// concatenation: the gradient of what was split. Exact but for the sign of zeros.
Graph join_pads(Graph graph);

}  // namespace sgtc
