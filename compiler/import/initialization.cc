#include "import/initialization.h"

#include "import/node_lowering.h"
#include "import/tensor.h"
#include "ir/interpret.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

double real_attribute(const onnx::NodeProto& node, const std::string& name, double otherwise) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.f();
  }
  return otherwise;
}

const onnx::TensorProto* tensor_attribute(const onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name && attribute.has_t()) return &attribute.t();
  }
  return nullptr;
}

LiteralPtr literal_of(const OnnxModel& model, const onnx::TensorProto& tensor) {
  return literal_of(tensor, model.external_data(), model.shared_proto());
}

Initializer literal_initializer(LiteralPtr literal) {
  Initializer initial;
  initial.kind = Initializer::Kind::kLiteral;
  initial.literal = std::move(literal);
  return initial;
}

Initializer random(const onnx::NodeProto& node, bool normal) {
  Initializer initial;
  initial.kind = normal ? Initializer::Kind::kRandomNormal : Initializer::Kind::kRandomUniform;
  initial.a = real_attribute(node, normal ? "mean" : "low", 0);
  initial.b = real_attribute(node, normal ? "scale" : "high", 1);
  initial.seed = saturate_to(DType::kInt64, real_attribute(node, "seed", 0));
  return initial;
}

Initializer filled(const OnnxModel& model, const onnx::NodeProto& node) {
  const onnx::TensorProto* value = tensor_attribute(node, "value");
  const LiteralPtr literal = value ? literal_of(model, *value) : nullptr;
  if (literal && literal->element_count() != 1) {
    throw Error("attribute \"value\" of ConstantOfShape: expected one element, found " +
                std::to_string(literal->element_count()));
  }
  Initializer initial;
  initial.a = literal ? literal->as_double(0) : 0;
  initial.kind = initial.a == 0 ? Initializer::Kind::kZero : Initializer::Kind::kFill;
  return initial;
}

LiteralPtr computed(const OnnxModel& model, const onnx::GraphProto& graph,
                    const std::string& name) {
  const std::vector<std::string> unsupported =
      unsupported_nodes(model, graph.node(), needed_nodes(graph.node(), {name}));
  if (!unsupported.empty()) {
    throw Error("the initialization graph has an operator that is not supported: " +
                unsupported.front());
  }
  Diagnostics diagnostics;
  ImportState state(model, diagnostics);
  Scope scope;
  for (const auto& tensor : graph.initializer()) {
    scope.names[tensor.name()].value =
        state.graph.add_constant(literal_of(model, tensor), tensor.name());
  }
  Surroundings surroundings;
  surroundings.opsets = &model.opsets();
  surroundings.owner = model.shared_proto();
  lower_nodes(state, graph.node(), {name}, scope, surroundings);
  diagnostics.checkpoint();
  const Binding* found = scope.find(name);
  if (!found || found->value == kNone) {
    throw Error("nothing computes \"" + name + "\" in the initialization graph");
  }
  state.graph.outputs = {{name, found->value}};
  Interpreter interpreter(state.graph);
  interpreter.run();
  return to_literal(interpreter.output(name));
}

}  // namespace

Initializer initial_value(const OnnxModel& model, const onnx::GraphProto& graph,
                          const std::string& name) {
  for (const auto& node : graph.node()) {
    if (node.output_size() != 1 || node.output(0) != name) continue;
    const std::string& op = node.op_type();
    if (op == "RandomNormal" || op == "RandomUniform") return random(node, op == "RandomNormal");
    if (op == "ConstantOfShape") return filled(model, node);
    const onnx::TensorProto* value = op == "Constant" ? tensor_attribute(node, "value") : nullptr;
    if (value) return literal_initializer(literal_of(model, *value));
  }
  return literal_initializer(computed(model, graph, name));
}

}  // namespace sgtc
