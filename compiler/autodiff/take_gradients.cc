#include "autodiff/take_gradients.h"

#include <algorithm>
#include <map>
#include <utility>

#include "autodiff/expressions.h"

namespace sgtc {
namespace {

/// The given gradients by the name of their parameter; they leave the outputs.
std::map<std::string, ValueId> remove_outputs(Graph& graph,
                                              const std::vector<GivenGradient>& given) {
  std::map<std::string, ValueId> gradients;
  for (const GivenGradient& gradient : given) {
    const auto output =
        std::find_if(graph.outputs.begin(), graph.outputs.end(),
                     [&](const Output& candidate) { return candidate.name == gradient.output; });
    if (output == graph.outputs.end()) continue;
    gradients[gradient.parameter] = output->value;
    graph.outputs.erase(output);
  }
  return gradients;
}

/// The part of a micro-batch in the gradient, accumulated if there are several.
ValueId finished_use(Graph& graph, const Value& parameter, ValueId gradient, double scale) {
  const Node* producer = graph.producer(gradient);
  graph.context() = {Phase::kBackward, 0, {}};
  if (producer != nullptr) graph.context().sources = producer->sources;
  const ValueId part = scale == 1 ? gradient : Expressions(graph).mul(gradient, scale);
  if (graph.micro_batches == 1) return part;
  const std::string name = "grad." + parameter.name + ".0";
  const TensorType type = parameter.type;
  const ValueId state = graph.add_state(name, type, StateRole::kAccumulator, {});
  return graph.add(Op::kAccumulate, {state, part}, {}, name + ".total");
}

}  // namespace

Differentiated take_gradients(Graph graph, const std::vector<GivenGradient>& given, double scale,
                              Diagnostics& diagnostics) {
  Differentiated result;
  const std::map<std::string, ValueId> gradients = remove_outputs(graph, given);
  for (const ValueId state : std::vector<ValueId>(graph.states)) {
    const Value parameter = graph.value(state);
    if (parameter.role != StateRole::kParameter) continue;
    const auto found = gradients.find(parameter.name);
    if (found == gradients.end()) {
      diagnostics.warning(parameter.name,
                          "is trainable, but the file has no gradient of it; it stays as it is");
    } else if (graph.type(found->second) != parameter.type) {
      const TensorType& type = graph.type(found->second);
      diagnostics.error("gradient of \"" + parameter.name + "\"",
                        "expected the parameter's shape " + to_string(parameter.type.shape) +
                            " and type " + std::string(name_of(parameter.type.dtype)) + ", found " +
                            to_string(type.shape) + " and " + std::string(name_of(type.dtype)));
    } else {
      const ValueId use = finished_use(graph, parameter, found->second, scale);
      result.gradients.push_back({state, {use}});
    }
  }
  if (result.gradients.empty() && !diagnostics.has_errors()) {
    diagnostics.error(graph.name,
                      "gives no gradient of a trained parameter: there is nothing to "
                      "train; check --train and --freeze");
  }
  diagnostics.checkpoint();
  graph.context() = {};
  result.graph = std::move(graph);
  return result;
}

}  // namespace sgtc
