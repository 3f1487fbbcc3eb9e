// Walks ONNX graphs and function bodies and lowers their nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "import/lowering.h"
#include "import/node_order.h"

namespace sgtc {

/// Names that the nodes of one graph or function body see.
struct Scope {
  const Scope* parent = nullptr;  // the enclosing graph of a branch
  std::map<std::string, Binding> names;
  /// Null when the name is not known.
  const Binding* find(const std::string& name) const;
};

/// What surrounds a list of nodes.
struct Surroundings {
  const Opsets* opsets = nullptr;
  std::shared_ptr<const void> owner;  // keeps the nodes alive
  std::string prefix;                 // of node names in messages: "outer/"
  int depth = 0;
  Phase phase = Phase::kForward;  // of the Graph's nodes
};

/// One line for each of the needed nodes that neither has a rule nor a function body nor a body of
/// its own: node, operator, domain and version. Looks into the model's own functions and into the
/// bodies of loops. Rules that are slow count as rules with `accepts_slow`.
std::vector<std::string> unsupported_nodes(const OnnxModel& model, const NodeList& nodes,
                                           const std::vector<int>& needed,
                                           bool accepts_slow = false);

/// Lowers the nodes that `wanted` values need into `state.graph` and binds their outputs in
/// `scope`; what is bound there already is not computed again. A node that fails is reported to
/// `state.diagnostics` and its outputs are marked failed; nodes that depend on them are skipped.
void lower_nodes(ImportState& state, const NodeList& nodes, const std::vector<std::string>& wanted,
                 Scope& scope, const Surroundings& surroundings);

/// Does so for a body, whose formal inputs are bound in `inner`, and returns what its outputs are
/// bound to. Throws Error when nothing computes one, or when bodies are nested too deeply.
std::vector<Binding> lower_body(ImportState& state, const NodeList& nodes,
                                const std::vector<std::string>& outputs, Scope& inner,
                                const Surroundings& surroundings);

}  // namespace sgtc
