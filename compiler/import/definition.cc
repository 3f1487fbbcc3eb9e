#include "import/definition.h"

#include "import/control_flow.h"
#include "import/gradient_node.h"
#include "import/sequences.h"

namespace sgtc {
namespace {

const onnx::OpSchema* schema_of(const std::string& op, int64_t opset, const std::string& domain) {
  return onnx::OpSchemaRegistry::Schema(op, static_cast<int>(opset), domain);
}

// The version of the node's operator set; a domain that the file does not mention is at 1.
int64_t opset_of(const onnx::NodeProto& node, const Opsets& opsets) {
  const auto found = opsets.find(canonical_domain(node.domain()));
  return found == opsets.end() ? 1 : found->second;
}

}  // namespace

Definition definition_of(const OnnxModel& model, const onnx::NodeProto& node,
                         const Opsets& opsets) {
  const std::string domain = canonical_domain(node.domain());
  Definition definition;
  definition.opset = opset_of(node, opsets);
  definition.own_function = model.function(domain, node.op_type());
  if (definition.own_function) return definition;
  const onnx::OpSchema* schema = schema_of(node.op_type(), definition.opset, domain);
  if (schema) definition.since = schema->SinceVersion();
  definition.is_gradient = is_gradient_node(node);
  definition.opens_body = schema && is_control_flow(node, definition.since);
  definition.is_sequence = schema && is_sequence_operator(node);
  definition.rule = find_rule(domain, node.op_type(), definition.since);
  if (!definition.rule && schema &&
      (schema->HasFunction() || schema->HasContextDependentFunction())) {
    definition.library_function = schema;
  }
  return definition;
}

std::string unsupported_text(const onnx::NodeProto& node, const Definition& definition,
                             const std::string& prefix) {
  const std::string domain = canonical_domain(node.domain());
  return describe(node, prefix) + ", domain " + (domain.empty() ? "ai.onnx" : domain) +
         ", version " + std::to_string(definition.opset) +
         (definition.is_slow() ? "; --on-unsupported=fallback computes it slowly" : "");
}

}  // namespace sgtc
