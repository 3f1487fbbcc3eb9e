// From graph nodes to a LoopNest.
#pragma once

#include <optional>
#include <vector>

#include "passes/loop_nest.h"

namespace sgtc {

/// Nodes that are to become one nest.
struct NestRequest {
  std::vector<NodeId> nodes;     // in execution order, loop operators only
  std::vector<ValueId> outputs;  // values that the nest must store
  /// The value that an anchor hands to its epilogue; kNone for a kernel of its own. It is a result
  /// of no node in `nodes` and may be among `outputs`.
  ValueId given = kNone;
  /// How the anchor walks the given value: the first dimensions are its batch, the next ones its
  /// rows, the rest its columns.
  size_t batch_dimensions = 0;
  size_t row_dimensions = 0;
};

/// True for operators that a nest can compute.
bool is_loop_op(Op op);

/// Bodies beyond this many expressions are refused: maps that differ at every use would let a
/// value be computed exponentially often.
inline constexpr size_t kMaxExpressions = 400;

/// Walks from the outputs to the inputs, carrying for each value the map from loop coordinates to
/// its elements. Returns nothing when the nodes do not fit into one nest: outputs of different
/// size, reductions over different elements or in different orders, a reshape whose digits are not
/// affine, an accumulator that would be read after it was written, or too large a body.
std::optional<LoopNest> build_loop_nest(const Graph& graph, const NestRequest& request);

/// True when the written argument of `store` may occupy the bytes of the argument `read`: each
/// element is read only before the same element is written, or before its row is, by the same
/// block.
bool may_share_bytes(const LoopNest& nest, int32_t read, const Store& store);

}  // namespace sgtc
