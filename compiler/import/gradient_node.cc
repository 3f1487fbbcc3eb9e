#include "import/gradient_node.h"

#include "support/diagnostics.h"

namespace sgtc {

bool is_gradient_node(const onnx::NodeProto& node) {
  return node.domain() == "ai.onnx.preview.training" && node.op_type() == "Gradient";
}

GradientNode read_gradient_node(const onnx::NodeProto& node) {
  GradientNode gradient;
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "y") gradient.y = attribute.s();
    const std::vector<std::string> names(attribute.strings().begin(), attribute.strings().end());
    if (attribute.name() == "xs") gradient.xs = names;
    if (attribute.name() == "zs") gradient.zs = names;
  }
  if (gradient.y.empty() || gradient.xs.empty()) {
    throw Error("attributes \"y\" and \"xs\" are required");
  }
  const size_t variables = gradient.xs.size() + gradient.zs.size();
  if (static_cast<size_t>(node.input_size()) != variables) {
    throw Error("expected as many inputs as xs and zs have names, " + std::to_string(variables) +
                ", found " + std::to_string(node.input_size()));
  }
  for (int i = 0; i < node.input_size(); ++i) {
    const auto k = static_cast<size_t>(i);
    const std::string& name =
        k < gradient.xs.size() ? gradient.xs[k] : gradient.zs[k - gradient.xs.size()];
    gradient.at_named_values = gradient.at_named_values && node.input(i) == name;
  }
  return gradient;
}

}  // namespace sgtc
