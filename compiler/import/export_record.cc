#include "import/export_record.h"

#include <algorithm>
#include <sstream>

namespace sgtc {
namespace {

constexpr const char* kSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr const char* kFoldedKey = "pkg.onnxscript.optimizer.folded_from";

// The texts between single quotes.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> parts;
  size_t open = text.find('\'');
  while (open != std::string::npos) {
    const size_t close = text.find('\'', open + 1);
    if (close == std::string::npos) break;
    parts.push_back(text.substr(open + 1, close - open - 1));
    open = text.find('\'', close + 1);
  }
  return parts;
}

}  // namespace

ExportRecord::ExportRecord(const onnx::GraphProto& graph) {
  for (const auto& entry : graph.metadata_props()) {
    if (entry.key() != kSignatureKey) continue;
    present_ = true;
    std::istringstream lines(entry.value());
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> target = quoted(line);
      if (target.empty()) continue;
      if (line.find(": PARAMETER ") != std::string::npos) {
        parameters_.push_back(target[0]);
        parameter_set_.insert(target[0]);
      } else {
        buffers_.insert(target[0]);
      }
    }
  }
  for (const auto& value : graph.value_info()) {
    for (const auto& entry : value.metadata_props()) {
      if (entry.key() == kFoldedKey) folded_from_[value.name()] = quoted(entry.value());
    }
  }
}

Origin ExportRecord::origin(const std::string& initializer) const {
  if (!present_) return Origin::kUnknown;
  if (parameter_set_.count(initializer) != 0) return Origin::kParameter;
  if (buffers_.count(initializer) != 0) return Origin::kBuffer;
  if (!folded_parameters(initializer).empty()) return Origin::kParameter;
  // A bias that the optimizer made is named after the weight it belongs to: "conv1.weight_bias".
  const bool derived = std::any_of(
      parameters_.begin(), parameters_.end(),
      [&initializer](const std::string& name) { return initializer.starts_with(name + "_"); });
  return derived ? Origin::kParameter : Origin::kComputed;
}

std::vector<std::string> ExportRecord::folded_parameters(const std::string& initializer) const {
  std::vector<std::string> parameters;
  const auto found = folded_from_.find(initializer);
  if (found == folded_from_.end()) return parameters;
  std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(parameters),
               [this](const std::string& name) { return parameter_set_.count(name) != 0; });
  return parameters;
}

std::vector<std::string> ExportRecord::lost_parameters(const onnx::GraphProto& graph) const {
  std::set<std::string> held;
  for (const auto& tensor : graph.initializer()) {
    held.insert(tensor.name());
    for (const std::string& name : folded_parameters(tensor.name())) held.insert(name);
  }
  std::vector<std::string> lost;
  std::copy_if(parameters_.begin(), parameters_.end(), std::back_inserter(lost),
               [&held](const std::string& name) { return held.count(name) == 0; });
  return lost;
}

}  // namespace sgtc
