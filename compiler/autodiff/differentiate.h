// Reverse-mode differentiation of a training graph.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "support/diagnostics.h"

namespace sgtc {

/// Gradient contributions to one trained parameter.
struct ParameterGradient {
  ValueId state = kNone;
  /// One value per use that contributes, in the order of the using nodes, each of the parameter's
  /// type. They may be used in the update phase and are not added yet: their sum in this order is
  /// the gradient, whatever stage computes which use.
  std::vector<ValueId> uses;
  /// Whether the uses are the replica's shards of sums over replicas (Op::kReduceScatter).
  bool sharded = false;
};

struct Differentiated {
  Graph graph;
  /// In the order of the graph's states; parameters that the loss does not depend on are left out.
  std::vector<ParameterGradient> gradients;
};

/// Appends to `forward` the backward nodes of outputs[0], the loss, which must have one element.
///
/// Nodes are visited in reverse order, each once; the contributions of several users of a value
/// are added in the order of the users. Backward nodes carry the sources of their forward node.
/// With several micro-batches each use of a parameter is accumulated, where it is computed, into a
/// state "grad.<parameter>.<index of the use>" of role accumulator. Update-phase nodes of `forward`
/// stay last.
///
/// Errors: a loss that is not one float; operators without a gradient between a parameter and the
/// loss, all of them at once; no parameter to train. A parameter that the loss does not depend on
/// is a warning.
Differentiated differentiate(const Graph& forward, Diagnostics& diagnostics);

/// Appends the gradients of the sum of y's elements, weighted by `seed` (kNone: ones), with respect
/// to `xs`: one value per x, kNone where it is zero. Values in `xs` and `held` count as
/// independent, whatever computes them. Nodes have the phase of `graph.context()`. For gradients
/// inside a forward graph; nothing is accumulated. Throws Error naming the nodes that have no
/// gradient.
std::vector<ValueId> append_gradients(Graph& graph, ValueId y, ValueId seed,
                                      const std::vector<ValueId>& xs,
                                      const std::vector<ValueId>& held);

}  // namespace sgtc
