// ONNX files with the records that PyTorch's exporter leaves in them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "import/helper.h"

namespace sgtc::testing {

constexpr const char* kSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr const char* kFoldedKey = "pkg.onnxscript.optimizer.folded_from";
constexpr const char* kCallKey = "pkg.torch.onnx.fx_node";
constexpr const char* kScopesKey = "pkg.torch.onnx.name_scopes";

inline void set_call(onnx::NodeProto& node, const std::string& op, const std::string& arguments) {
  auto* entry = node.add_metadata_props();
  entry->set_key(kCallKey);
  entry->set_value("%v : [num_users=1] = call_function[target=torch.ops.aten." + op + "](args = (" +
                   arguments + "), kwargs = {})");
}

// Records that the node is part of a call in the code of a module.
inline void set_module(onnx::NodeProto& node, const std::string& module) {
  auto* entry = node.add_metadata_props();
  entry->set_key(kScopesKey);
  entry->set_value("['', '" + module + "', 'call']");
}

// A file with parameters of the given names, whose arguments are %p_NAME, and one recorded call
// ("op.overload: arguments") per node; an empty one records nothing.
struct Exported {
  onnx::ModelProto proto;

  Exported(const std::string& graph, const std::vector<std::string>& parameters,
           const std::vector<std::string>& calls)
      : proto(parse_onnx("<ir_version: 10, opset_import: [\"\" : 18]>\n" + graph)) {
    std::string signature;
    for (const std::string& name : parameters) {
      signature += "p_" + name + ": PARAMETER target='" + name + "'\n";
    }
    auto* entry = proto.mutable_graph()->add_metadata_props();
    entry->set_key(kSignatureKey);
    entry->set_value(signature);
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t colon = calls[i].find(':');
      if (colon == std::string::npos) continue;
      set_call(*proto.mutable_graph()->mutable_node(static_cast<int>(i)), calls[i].substr(0, colon),
               calls[i].substr(colon + 2));
    }
  }

  Exported& folded(const std::string& initializer, const std::string& values) {
    auto* value = proto.mutable_graph()->add_value_info();
    value->set_name(initializer);
    auto* entry = value->add_metadata_props();
    entry->set_key(kFoldedKey);
    entry->set_value(values);
    return *this;
  }

  std::vector<Diagnostic> warnings;

  Graph import(const ImportOptions& options = {}) {
    Diagnostics diagnostics;
    const OnnxModel model = OnnxModel::from_proto(proto, "m.onnx", ".", diagnostics);
    Graph graph = import_graph(model, options, diagnostics);
    verify(graph, "import");
    warnings = diagnostics.all();
    return graph;
  }
};

// The trained tensors, by name.
inline std::vector<std::string> parameters_of(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId state : graph.states) {
    if (graph.value(state).role == StateRole::kParameter) names.push_back(graph.value(state).name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace sgtc::testing
