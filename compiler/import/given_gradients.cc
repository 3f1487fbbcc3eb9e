#include "import/given_gradients.h"

#include <algorithm>
#include <set>

#include "import/node_order.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr std::string_view kSuffix = "_grad";

bool is_accumulator(const onnx::NodeProto& node) {
  return node.domain() == "com.microsoft" &&
         (node.op_type() == "InPlaceAccumulator" || node.op_type() == "InPlaceAccumulatorV2");
}

std::string parameter_of(const std::string& gradient) {
  const bool named = gradient.size() > kSuffix.size() && gradient.ends_with(kSuffix);
  return named ? gradient.substr(0, gradient.size() - kSuffix.size()) : "";
}

bool is_initializer(const onnx::GraphProto& graph, const std::string& name) {
  return std::any_of(graph.initializer().begin(), graph.initializer().end(),
                     [&name](const auto& tensor) { return tensor.name() == name; });
}

template <typename List, typename Predicate>
void erase_if(List* list, Predicate predicate) {
  list->erase(std::remove_if(list->begin(), list->end(), predicate), list->end());
}

}  // namespace

std::vector<NamedGradient> take_given_gradients(onnx::GraphProto& graph) {
  std::vector<NamedGradient> gradients;
  std::set<std::string> inputs, outputs;
  for (const onnx::NodeProto& node : graph.node()) {
    if (!is_accumulator(node)) continue;
    const std::string gradient = node.input_size() > 1 ? node.input(1) : "";
    const std::string parameter = parameter_of(gradient);
    if (!is_initializer(graph, parameter)) {
      throw Error(describe(node) + " accumulates \"" + gradient +
                  "\", which is the gradient of no initializer; give the values of the parameters "
                  "with --ort-checkpoint");
    }
    gradients.push_back({parameter, gradient});
    inputs.insert(node.input(0));
    if (node.input_size() > 2) inputs.insert(node.input(2));
    outputs.insert(node.output().begin(), node.output().end());
  }
  if (gradients.empty()) return gradients;
  erase_if(graph.mutable_node(), is_accumulator);
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) inputs.erase(input);
  }
  const auto by_name = [](const std::set<std::string>& names) {
    return [&names](const auto& info) { return names.count(info.name()) != 0; };
  };
  erase_if(graph.mutable_input(), by_name(inputs));
  erase_if(graph.mutable_output(), by_name(outputs));
  return gradients;
}

}  // namespace sgtc
