// What tests ask of the files of sgtc-model.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/models.h"
#include "support/diagnostics.h"

namespace sgtc::models {

inline std::map<std::string, std::vector<int64_t>> weights_of(const onnx::ModelProto& model) {
  std::map<std::string, std::vector<int64_t>> weights;
  for (const auto& sparse : model.graph().sparse_initializer()) {
    weights[sparse.values().name()] = {sparse.dims().begin(), sparse.dims().end()};
  }
  return weights;
}

/// Of all weights but running statistics.
inline int64_t element_count(const onnx::ModelProto& model) {
  int64_t total = 0;
  for (const auto& [name, dims] : weights_of(model)) {
    if (name.find("running_") != std::string::npos) continue;
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    total += count;
  }
  return total;
}

inline const onnx::NodeProto& node_named(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& node : model.graph().node()) {
    if (node.name() == name) return node;
  }
  throw Error("no node is named " + name);
}

inline int count_ops(const onnx::ModelProto& model, const std::string& op) {
  const auto& nodes = model.graph().node();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [&op](const auto& node) { return node.op_type() == op; }));
}

/// The node of the initialization graph that fills a weight.
inline const onnx::NodeProto& initializer_of(const onnx::ModelProto& model,
                                             const std::string& weight) {
  const auto& info = model.training_info(0);
  for (const auto& binding : info.initialization_binding()) {
    if (binding.key() != weight) continue;
    for (const auto& node : info.initialization().node()) {
      if (node.output(0) == binding.value()) return node;
    }
  }
  throw Error("nothing initializes " + weight);
}

inline float real_attribute(const onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.f();
  }
  throw Error("no attribute " + name);
}

template <typename Config>
std::string error_of(onnx::ModelProto (*build)(const Config&), const Config& config) {
  try {
    build(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The `element_count` of each published size by its name.
template <typename Config>
std::map<std::string, int64_t> parameter_counts(const std::vector<Preset<Config>>& presets,
                                                onnx::ModelProto (*build)(const Config&)) {
  std::map<std::string, int64_t> counts;
  for (const auto& preset : presets) {
    counts[std::string(preset.name)] = element_count(build(preset.config));
  }
  return counts;
}

}  // namespace sgtc::models
