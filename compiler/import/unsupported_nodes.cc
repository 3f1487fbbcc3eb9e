#include <set>

#include "import/definition.h"
#include "import/node_lowering.h"

namespace sgtc {
namespace {

// The body of a Loop or Scan; an empty graph when it is missing.
const onnx::GraphProto& body_of(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "body") return attribute.g();
  }
  return onnx::GraphProto::default_instance();
}

// The functions that were looked into, each with the operator sets that it saw: calls of calls may
// be as many as a power of their depth.
using Visited = std::set<std::pair<const onnx::FunctionProto*, Opsets>>;

void list_unsupported(const OnnxModel& model, const NodeList& nodes, const std::vector<int>& needed,
                      const Opsets& opsets, bool accepts_slow, const std::string& prefix, int depth,
                      Visited& visited, std::vector<std::string>& list) {
  if (depth > kMaxBodyDepth) return;  // reported when it is lowered
  for (int i : needed) {
    const onnx::NodeProto& node = nodes[i];
    const Definition definition = definition_of(model, node, opsets);
    if (!definition.supported(accepts_slow)) {
      list.push_back(unsupported_text(node, definition, prefix));
    }
    const std::string inside = prefix + name_of(node) + "/";
    if (definition.opens_body && node.op_type() != "If") {
      const onnx::GraphProto& body = body_of(node);
      std::vector<std::string> outputs;
      for (const auto& output : body.output()) outputs.push_back(output.name());
      list_unsupported(model, body.node(), needed_nodes(body.node(), outputs), opsets, accepts_slow,
                       inside, depth + 1, visited, list);
    }
    if (!definition.own_function) continue;
    const auto& body = *definition.own_function;
    Opsets inner = opsets;
    for (const auto& entry : body.opset_import()) {
      inner[canonical_domain(entry.domain())] = entry.version();
    }
    if (!visited.insert({&body, inner}).second) continue;
    const std::vector<std::string> outputs(body.output().begin(), body.output().end());
    list_unsupported(model, body.node(), needed_nodes(body.node(), outputs), inner, accepts_slow,
                     inside, depth + 1, visited, list);
  }
}

}  // namespace

std::vector<std::string> unsupported_nodes(const OnnxModel& model, const NodeList& nodes,
                                           const std::vector<int>& needed, bool accepts_slow) {
  Visited visited;
  std::vector<std::string> list;
  list_unsupported(model, nodes, needed, model.opsets(), accepts_slow, "", 0, visited, list);
  return list;
}

}  // namespace sgtc
