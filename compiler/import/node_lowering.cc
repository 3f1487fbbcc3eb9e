#include "import/node_lowering.h"

#include <algorithm>

#include "import/control_flow.h"
#include "import/definition.h"
#include "import/gradient_node.h"
#include "import/sequences.h"
#include "import/tensor.h"
#include "onnx/defs/schema.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Ends the import after its last error was reported.
struct Abandoned {};

// Gives the nodes of a function body the attributes of the call, or their defaults: those of the
// function, and for a function of ONNX those of its operator.
class AttributeBinder {
 public:
  AttributeBinder(const onnx::NodeProto& call, const onnx::FunctionProto& function,
                  const onnx::OpSchema* schema) {
    if (schema) {
      for (const auto& [name, attribute] : schema->attributes()) {
        if (attribute.default_value.has_name()) values_[name] = attribute.default_value;
      }
    }
    for (const auto& attribute : function.attribute_proto()) values_[attribute.name()] = attribute;
    for (const auto& attribute : call.attribute()) values_[attribute.name()] = attribute;
  }

  void bind(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) const {
    for (auto& node : nodes) bind(node);
  }

 private:
  void bind(onnx::NodeProto& node) const {
    auto& attributes = *node.mutable_attribute();
    for (int i = attributes.size() - 1; i >= 0; --i) {
      onnx::AttributeProto& attribute = attributes[i];
      if (attribute.has_g()) bind(*attribute.mutable_g()->mutable_node());
      for (auto& graph : *attribute.mutable_graphs()) bind(*graph.mutable_node());
      if (attribute.ref_attr_name().empty()) continue;
      const auto found = values_.find(attribute.ref_attr_name());
      if (found == values_.end()) {
        attributes.DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = attribute.name();
      attribute = found->second;
      attribute.set_name(name);
    }
  }

  std::map<std::string, onnx::AttributeProto> values_;
};

class NodeLowering {
 public:
  NodeLowering(ImportState& state, const NodeList& nodes, Scope& scope,
               const Surroundings& surroundings)
      : state_(state), nodes_(nodes), scope_(scope), surroundings_(surroundings) {}

  void run(const std::vector<std::string>& wanted) {
    std::set<std::string> known;
    for (const auto& [name, binding] : scope_.names) known.insert(name);
    for (int i : needed_nodes(nodes_, wanted, known)) lower(nodes_[i]);
  }

 private:
  void lower(const onnx::NodeProto& node) {
    std::vector<Binding> outputs;
    bool lowered = false;
    try {
      std::vector<Binding> inputs = bind_inputs(node);
      const bool skipped =
          std::any_of(inputs.begin(), inputs.end(), [](const Binding& b) { return b.failed; });
      if (!skipped) {
        outputs = lower_bound(node, std::move(inputs));
        lowered = true;
      }
    } catch (const TooManyTensors& error) {
      state_.diagnostics.error(describe(node, surroundings_.prefix), error.what());
      throw Abandoned();
    } catch (const Error& error) {
      state_.diagnostics.error(describe(node, surroundings_.prefix), error.what());
    }
    bind_outputs(node, outputs, lowered);
  }

  std::vector<Binding> bind_inputs(const onnx::NodeProto& node) const {
    std::vector<Binding> inputs;
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        inputs.emplace_back();
        continue;
      }
      const Binding* found = scope_.find(name);
      if (!found) {
        throw Error("input \"" + name +
                    "\" is neither an input of the graph, an initializer, nor "
                    "an output of a node; check the file with onnx.checker");
      }
      if (found->unmade) throw Error("input \"" + name + "\" is an output that is not supported");
      inputs.push_back(*found);
    }
    return inputs;
  }

  void bind_outputs(const onnx::NodeProto& node, const std::vector<Binding>& outputs,
                    bool lowered) {
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      Binding binding;
      if (i < static_cast<int>(outputs.size())) binding = outputs[static_cast<size_t>(i)];
      binding.failed = binding.failed || !lowered;
      binding.unmade = lowered && !binding.failed && !binding.present();
      scope_.names[name] = binding;
    }
  }

  std::vector<Binding> lower_bound(const onnx::NodeProto& node, std::vector<Binding> inputs) {
    if (++state_.lowered_nodes > state_.most_tensors) {
      throw TooManyTensors("more than " + std::to_string(state_.most_tensors) +
                           " nodes, those of opened functions and unrolled loops among them; use "
                           "fewer, or raise the limit with --max-tensors");
    }
    const Definition definition = definition_of(state_.model, node, *surroundings_.opsets);
    if (definition.opens_body) {
      return lower_control_flow(state_, node, inputs, scope_, surroundings_);
    }
    if (definition.is_sequence || passes_sequence(node, inputs)) {
      return lower_sequences(node, inputs);
    }
    if (definition.is_gradient) return lower_gradient(node, inputs);
    if (definition.own_function) {
      return expand(node, inputs, std::make_shared<onnx::FunctionProto>(*definition.own_function),
                    nullptr);
    }
    if (definition.rule && definition.supported(state_.accepts_slow)) {
      return apply(node, std::move(inputs), definition);
    }
    if (definition.library_function) return expand_library(node, inputs, definition);
    throw Error("the operator is not supported (" +
                unsupported_text(node, definition, surroundings_.prefix) + ")");
  }

  static bool passes_sequence(const onnx::NodeProto& node, const std::vector<Binding>& inputs) {
    return node.op_type() == "Identity" && inputs.size() == 1 && inputs[0].elements;
  }

  std::vector<Binding> lower_sequences(const onnx::NodeProto& node,
                                       const std::vector<Binding>& inputs) {
    if (node.op_type() == "Identity") return inputs;
    state_.graph.context() = {surroundings_.phase, 0, {surroundings_.prefix + name_of(node)}};
    return lower_sequence(state_, node, inputs, surroundings_.owner);
  }

  std::vector<Binding> apply(const onnx::NodeProto& node, std::vector<Binding> inputs,
                             const Definition& definition) {
    state_.graph.context() = {surroundings_.phase, 0, {surroundings_.prefix + name_of(node)}};
    Lowering lowering(state_, node, std::move(inputs), definition.since, surroundings_.owner);
    if (node.output_size() > 0) {
      lowering.set_result_name(surroundings_.prefix + node.output(0));
    }
    const size_t first = state_.graph.nodes.size();
    std::vector<Binding> outputs;
    for (ValueId id : definition.rule->lower(lowering)) {
      Binding binding;
      binding.value = id;
      outputs.push_back(binding);
    }
    if (definition.is_slow()) warn_of_cost(node, first, outputs);
    return outputs;
  }

  // What the Graph's nodes from `first` on write, against the outputs that a kernel would write.
  void warn_of_cost(const onnx::NodeProto& node, size_t first,
                    const std::vector<Binding>& outputs) const {
    const Graph& graph = state_.graph;
    int64_t written = 0, wanted = 0;
    for (size_t i = first; i < graph.nodes.size(); ++i) {
      for (ValueId id : graph.nodes[i].results) written += element_count(graph.shape(id));
    }
    for (const Binding& output : outputs) wanted += element_count(graph.shape(output.value));
    state_.diagnostics.warning(describe(node, surroundings_.prefix),
                               "has no kernel and runs as a slow reference: " +
                                   std::to_string(graph.nodes.size() - first) +
                                   " operators write " + std::to_string(written) +
                                   " elements per micro-batch, where a kernel would write " +
                                   std::to_string(wanted));
  }

  std::vector<Binding> expand(const onnx::NodeProto& node, const std::vector<Binding>& inputs,
                              const std::shared_ptr<onnx::FunctionProto>& body,
                              const onnx::OpSchema* schema) {
    AttributeBinder(node, *body, schema).bind(*body->mutable_node());
    Opsets opsets = *surroundings_.opsets;
    for (const auto& entry : body->opset_import()) {
      opsets[canonical_domain(entry.domain())] = entry.version();
    }
    Scope inner;
    for (int i = 0; i < body->input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      inner.names[body->input(i)] = at < inputs.size() ? inputs[at] : Binding();
    }
    return lower_body(state_, body->node(), {body->output().begin(), body->output().end()}, inner,
                      {&opsets, body, surroundings_.prefix + name_of(node) + "/",
                       surroundings_.depth + 1, surroundings_.phase});
  }

  onnx::TypeProto type_proto(const Binding& binding) const {
    onnx::TypeProto proto;
    if (!binding.present()) return proto;
    const TensorType type = state_.type(binding);
    proto.mutable_tensor_type()->set_elem_type(onnx_from_dtype(type.dtype));
    auto* shape = proto.mutable_tensor_type()->mutable_shape();
    for (int64_t size : type.shape) shape->add_dim()->set_dim_value(size);
    return proto;
  }

  // ONNX's own code throws what it likes when the node does not fit its operator.
  static void build_function(const onnx::OpSchema& schema,
                             const onnx::FunctionBodyBuildContextImpl& context, int opset,
                             onnx::FunctionProto& body) {
    std::string reason;
    try {
      if (schema.BuildContextDependentFunction(context, body, opset)) return;
    } catch (const std::exception& error) {
      reason = std::string(": ") + error.what();
    }
    throw Error("ONNX builds no function body for these inputs and attributes" + reason);
  }

  std::vector<Binding> expand_library(const onnx::NodeProto& node,
                                      const std::vector<Binding>& inputs,
                                      const Definition& definition) {
    const onnx::OpSchema& schema = *definition.library_function;
    const auto opset = static_cast<int>(definition.opset);
    auto body = std::make_shared<onnx::FunctionProto>();
    if (schema.HasFunction()) {
      const onnx::FunctionProto* function = schema.GetFunction(opset);
      if (!function) throw Error("ONNX has no function body for this version of the operator");
      *body = *function;
    } else {
      std::vector<onnx::TypeProto> types;
      for (const Binding& binding : inputs) types.push_back(type_proto(binding));
      build_function(schema, onnx::FunctionBodyBuildContextImpl(node, types), opset, *body);
    }
    return expand(node, inputs, body, &schema);
  }

  // The gradients of y, which is a function of the values that xs and zs name, at the inputs.
  std::vector<Binding> lower_gradient(const onnx::NodeProto& node, std::vector<Binding> inputs) {
    const GradientNode gradient = read_gradient_node(node);
    Lowering lowering(state_, node, inputs, 1, surroundings_.owner);
    ValueIds xs, held;
    for (size_t i = 0; i < inputs.size(); ++i) {
      (i < gradient.xs.size() ? xs : held).push_back(lowering.input(static_cast<int>(i)));
      inputs[i].value = i < gradient.xs.size() ? xs.back() : held.back();
    }
    const ValueId y =
        gradient.at_named_values ? value_of(scope_, gradient.y) : lower_at(gradient, inputs);
    state_.graph.context() = {surroundings_.phase, 0, {surroundings_.prefix + name_of(node)}};
    std::vector<Binding> outputs;
    for (ValueId id : lowering.gradients(y, kNone, xs, held)) outputs.emplace_back().value = id;
    return outputs;
  }

  ValueId value_of(const Scope& scope, const std::string& name) {
    const Binding* found = scope.find(name);
    if (!found || !found->present()) throw Error("nothing computes \"" + name + "\"");
    return state_.value(*found);
  }

  // y computed again, at other values of its variables.
  ValueId lower_at(const GradientNode& gradient, const std::vector<Binding>& inputs) {
    Scope inner;
    inner.parent = &scope_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool first = i < gradient.xs.size();
      inner.names[first ? gradient.xs[i] : gradient.zs[i - gradient.xs.size()]] = inputs[i];
    }
    Surroundings surroundings = surroundings_;
    ++surroundings.depth;
    if (surroundings.depth > kMaxBodyDepth) throw Error("Gradient nodes are nested too deeply");
    lower_nodes(state_, nodes_, {gradient.y}, inner, surroundings);
    return value_of(inner, gradient.y);
  }

  ImportState& state_;
  const NodeList& nodes_;
  Scope& scope_;
  const Surroundings& surroundings_;
};

}  // namespace

const Binding* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->parent) {
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return &found->second;
  }
  return nullptr;
}

void lower_nodes(ImportState& state, const NodeList& nodes, const std::vector<std::string>& wanted,
                 Scope& scope, const Surroundings& surroundings) {
  try {
    NodeLowering(state, nodes, scope, surroundings).run(wanted);
  } catch (const Abandoned&) {
    if (surroundings.depth > 0) throw;
    state.diagnostics.checkpoint();
  }
}

std::vector<Binding> lower_body(ImportState& state, const NodeList& nodes,
                                const std::vector<std::string>& outputs, Scope& inner,
                                const Surroundings& surroundings) {
  if (surroundings.depth > kMaxBodyDepth) {
    throw Error("functions and bodies are nested more than " + std::to_string(kMaxBodyDepth) +
                " deep");
  }
  if (static_cast<int64_t>(surroundings.prefix.size()) > kMaxNameLength) {
    throw Error("the names of the functions and loops that it is in have together more than " +
                std::to_string(kMaxNameLength) + " characters; give them shorter names");
  }
  lower_nodes(state, nodes, outputs, inner, surroundings);
  std::vector<Binding> results;
  for (const std::string& name : outputs) {
    const Binding* found = inner.find(name);
    if (!found) throw Error("nothing computes the output \"" + name + "\" of its body");
    results.push_back(*found);
  }
  return results;
}

}  // namespace sgtc
