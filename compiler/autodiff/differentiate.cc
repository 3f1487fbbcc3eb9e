// Reverse mode over a list of nodes. The choices that matter later:
// - Which values need gradients is found first (a parameter reaches them) and which gradients are
//   zero is known while walking (nobody contributed), so neither frozen parts nor dead branches
//   leave nodes behind, and no collective is ever formed for them.
// - The additions of a value's contributions are fixed by the order of its users, and parameters
//   keep one gradient per use: stages of a pipeline may compute uses of one parameter, and the bits
//   of the sum must not depend on the cut.
// - A use is accumulated where it is computed, so that its buffer dies at once.
// Left out: gradients of gradients, and choosing what to keep for the backward phase, which is the
// business of recompute.
#include "autodiff/differentiate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "autodiff/gradients.h"
#include "ir/clone.h"

namespace sgtc {
namespace {

std::string describe(const Graph& graph, const Node& node) {
  if (node.sources.empty()) return graph.value(node.results[0]).name;
  std::string names = node.sources[0];
  for (size_t i = 1; i < node.sources.size(); ++i) names += ", " + node.sources[i];
  return names;
}

bool is_parameter(const Value& value) {
  return value.kind == ValueKind::kState && value.role == StateRole::kParameter;
}

/// What is differentiated with respect to what, per value of the graph. Wanted and held values are
/// leaves here, whatever computes them.
struct Variables {
  std::vector<bool> wanted;  // those that get a gradient
  std::vector<bool> held;    // those that count as constants
};

Variables parameters_of(const Graph& graph) {
  const size_t count = graph.values.size();
  Variables variables{std::vector<bool>(count), std::vector<bool>(count)};
  for (ValueId state : graph.states) {
    variables.wanted[static_cast<size_t>(state)] = is_parameter(graph.value(state));
  }
  return variables;
}

/// Per value: whether it is a float that a wanted value reaches.
std::vector<bool> find_dependents(const Graph& graph, const Variables& variables) {
  std::vector<bool> depends = variables.wanted;
  for (const Node& node : graph.nodes) {
    bool reached = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      return depends[static_cast<size_t>(operand)];
    });
    if (!reached) continue;
    for (ValueId result : node.results) {
      const auto at = static_cast<size_t>(result);
      if (!variables.held[at]) depends[at] = is_float(graph.dtype(result));
    }
  }
  return depends;
}

class Differentiator {
 public:
  Differentiator(Graph& graph, Variables variables, Phase phase, Diagnostics& diagnostics)
      : graph_(graph),
        variables_(std::move(variables)),
        phase_(phase),
        diagnostics_(diagnostics),
        depends_(find_dependents(graph, variables_)),
        contributions_(graph.values.size()),
        uses_left_(graph.values.size(), 0) {
    for (const Node& node : graph.nodes) {
      for (ValueId operand : node.operands) ++uses_left_[static_cast<size_t>(operand)];
    }
  }

  /// Appends the gradients of the one element of `loss`; those of the parameters are accumulated.
  std::vector<ParameterGradient> run(ValueId loss) {
    const auto forward_nodes = static_cast<NodeId>(graph_.nodes.size());
    accumulates_ = true;
    graph_.context() = {phase_, 0, {}};
    const ValueId one = ones_like(loss);
    contributions(loss).push_back(is_parameter(graph_.value(loss)) ? finished_use(loss, one, 0)
                                                                   : one);
    walk(forward_nodes);
    return collect();
  }

  /// Appends the gradients of the elements of `y`, weighted by `seed` and added up; kNone for zero.
  std::vector<ValueId> run(ValueId y, ValueId seed, const std::vector<ValueId>& xs) {
    const auto forward_nodes = static_cast<NodeId>(graph_.nodes.size());
    contributions(y).push_back(seed == kNone ? ones_like(y) : seed);
    walk(forward_nodes);
    std::vector<ValueId> gradients;
    for (ValueId x : xs) gradients.push_back(total(x));
    return gradients;
  }

 private:
  ValueId ones_like(ValueId y) {
    Expressions e(graph_);
    return e.broadcast(e.constant(e.dtype(y), 1), e.shape(y));
  }

  void walk(NodeId forward_nodes) {
    for (NodeId node = forward_nodes - 1; node >= 0; --node) visit(graph_.node(node));
    diagnostics_.checkpoint();
  }

  std::vector<ValueId>& contributions(ValueId id) {
    return contributions_[static_cast<size_t>(id)];
  }

  /// The gradient of a value once all of its users were visited; kNone for zero.
  ValueId total(ValueId id) {
    const std::vector<ValueId>& terms = contributions(id);
    if (terms.empty()) return kNone;
    // The users were visited last to first.
    ValueId sum = terms.back();
    for (size_t i = terms.size() - 1; i-- > 0;) sum = graph_.add(Op::kAdd, {sum, terms[i]});
    return sum;
  }

  /// Taken by value: appending moves the nodes.
  void visit(const Node node) {
    graph_.context() = {phase_, 0, node.sources};
    std::vector<ValueId> gradients = differentiate_node(node);
    for (size_t i = node.operands.size(); i-- > 0;) {
      const ValueId operand = node.operands[i];
      const int64_t use = --uses_left_[static_cast<size_t>(operand)];
      if (gradients.empty() || gradients[i] == kNone) continue;
      const bool is_use = accumulates_ && is_parameter(graph_.value(operand));
      contributions(operand).push_back(is_use ? finished_use(operand, gradients[i], use)
                                              : gradients[i]);
    }
  }

  /// Gradients per operand, or nothing when all are zero.
  std::vector<ValueId> differentiate_node(const Node& node) {
    std::vector<bool> needed;
    for (ValueId operand : node.operands) {
      needed.push_back(depends_[static_cast<size_t>(operand)]);
    }
    if (std::find(needed.begin(), needed.end(), true) == needed.end()) return {};
    std::vector<ValueId> upstream;
    for (ValueId result : node.results) {
      const bool ends_here = variables_.wanted[static_cast<size_t>(result)];
      upstream.push_back(ends_here ? kNone : total(result));
    }
    if (std::all_of(upstream.begin(), upstream.end(), [](ValueId g) { return g == kNone; })) {
      return {};
    }
    const GradientRule rule = gradient_rule(node.op);
    if (rule == nullptr) {
      refuse(node, "has no gradient");
      return {};
    }
    Backward backward(graph_, node, std::move(upstream), std::move(needed));
    rule(backward);
    if (!backward.refusal().empty()) refuse(node, backward.refusal());
    return backward.gradients();
  }

  void refuse(const Node& node, const std::string& reason) {
    diagnostics_.error(describe(graph_, node),
                       "operator " + std::string(name_of(node.op)) + " " + reason +
                           ", and a trained parameter reaches the loss through it; replace the "
                           "operator, or keep the parameters before it with --freeze");
  }

  /// What the update phase sees of one use of a parameter.
  ValueId finished_use(ValueId parameter, ValueId gradient, int64_t use) {
    if (graph_.micro_batches == 1) return gradient;
    const std::string name = "grad." + graph_.value(parameter).name + "." + std::to_string(use);
    const ValueId state =
        graph_.add_state(name, graph_.type(gradient), StateRole::kAccumulator, {});
    return graph_.add(Op::kAccumulate, {state, gradient}, {}, name + ".total");
  }

  std::vector<ParameterGradient> collect() {
    std::vector<ParameterGradient> gradients;
    for (ValueId state : graph_.states) {
      if (!is_parameter(graph_.value(state))) continue;
      std::vector<ValueId> uses = contributions(state);
      std::reverse(uses.begin(), uses.end());
      if (uses.empty()) {
        diagnostics_.warning(graph_.value(state).name,
                             "is trainable, but the loss does not depend on it; it stays as it is");
      } else {
        gradients.push_back({state, std::move(uses)});
      }
    }
    return gradients;
  }

  Graph& graph_;
  const Variables variables_;
  const Phase phase_;
  Diagnostics& diagnostics_;
  bool accumulates_ = false;
  std::vector<bool> depends_;
  /// Per forward value, one gradient per user, last user first.
  std::vector<std::vector<ValueId>> contributions_;
  /// Per value, its operand positions in nodes that are not visited yet.
  std::vector<int64_t> uses_left_;
};

void check_loss(const Graph& forward, Diagnostics& diagnostics) {
  if (forward.outputs.empty()) {
    diagnostics.error(forward.name, "has no output; expected the loss as its first output");
  } else {
    const Output& loss = forward.outputs[0];
    const TensorType& type = forward.type(loss.value);
    if (!is_float(type.dtype) || element_count(type.shape) != 1) {
      diagnostics.error(loss.name, "is not a loss: expected one floating-point number, found " +
                                       std::string(name_of(type.dtype)) + to_string(type.shape) +
                                       "; choose another output with --loss NAME");
    }
  }
  diagnostics.checkpoint();
}

void clone_phases(const Graph& source, bool update, Cloner& cloner) {
  for (const Node& node : source.nodes) {
    if ((node.phase == Phase::kUpdate) == update) cloner.clone(node);
  }
}

}  // namespace

Differentiated differentiate(const Graph& forward, Diagnostics& diagnostics) {
  check_loss(forward, diagnostics);
  Cloner cloner(forward);
  clone_phases(forward, false, cloner);
  Graph& target = cloner.target();
  target.outputs = {{forward.outputs[0].name, cloner[forward.outputs[0].value]}};
  std::vector<ParameterGradient> gradients =
      Differentiator(target, parameters_of(target), Phase::kBackward, diagnostics)
          .run(target.outputs[0].value);
  if (gradients.empty()) {
    diagnostics.error(forward.outputs[0].name,
                      "depends on no trainable parameter: there is nothing to train; check "
                      "--train, --freeze and --loss");
    diagnostics.checkpoint();
  }
  target.outputs.clear();
  clone_phases(forward, true, cloner);
  return {cloner.finish(), std::move(gradients)};
}

std::vector<ValueId> append_gradients(Graph& graph, ValueId y, ValueId seed,
                                      const std::vector<ValueId>& xs,
                                      const std::vector<ValueId>& held) {
  const Graph::Context context = graph.context();
  const size_t count = graph.values.size();
  Variables variables{std::vector<bool>(count), std::vector<bool>(count)};
  for (ValueId x : xs) variables.wanted[static_cast<size_t>(x)] = true;
  for (ValueId value : held) variables.held[static_cast<size_t>(value)] = true;
  Diagnostics diagnostics;
  std::vector<ValueId> gradients =
      Differentiator(graph, std::move(variables), context.phase, diagnostics).run(y, seed, xs);
  graph.context() = context;
  return gradients;
}

}  // namespace sgtc
