#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Replaces nodes whose operands are all constants by constants with the interpreter's values:
/// results of at most 2^20 elements; of iota and broadcast, which cost less to compute than to
/// load, at most 4096. Before the update, results without elements are constants whatever the
/// operands are. Never random numbers, accumulate or stack_micro_batches. A node whose evaluation
/// fails (an index out of range) stays and fails where it runs. Constants that nothing uses any
/// more stay until `eliminate_dead_nodes`.
Graph fold_constants(Graph graph);

}  // namespace sgtc
