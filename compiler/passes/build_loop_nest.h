// From graph nodes to a LoopNest.
#pragma once

#include <optional>
#include <vector>

#include "passes/loop_nest.h"

namespace sgtc {

/// Nodes that are to become one nest.
struct NestRequest {
  std::vector<NodeId> nodes;      // in execution order
  std::vector<ValueId> outputs;   // values that the nest must store
  /// The value that an anchor hands to its epilogue; kNone for a kernel of its own. It is a result
  /// of no node in `nodes` and may be among `outputs`.
  ValueId given = kNone;
};

/// True for operators that a nest can compute.
bool is_loop_op(Op op);

/// Walks from the outputs to the inputs, carrying for each value the map from loop coordinates to
/// its elements. Returns nothing when the nodes do not fit into one nest: outputs of different
/// size, reductions over different elements or in different orders, a reshape whose digits are not
/// affine, data gathered with a random layout, or a body that grows beyond `kMaxExpressions`.
std::optional<LoopNest> build_loop_nest(const Graph& graph, const NestRequest& request);

inline constexpr size_t kMaxExpressions = 400;

}  // namespace sgtc
