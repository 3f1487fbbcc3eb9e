#include "import/export_record.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace sgtc {
namespace {

constexpr const char* kSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr const char* kFoldedKey = "pkg.onnxscript.optimizer.folded_from";
constexpr const char* kCallKey = "pkg.torch.onnx.fx_node";
constexpr const char* kScopesKey = "pkg.torch.onnx.name_scopes";
constexpr std::string_view kCallPrefix = "[target=torch.ops.aten.";
constexpr std::string_view kArguments = "(args = (";

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

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// The elements of a tuple up to its closing parenthesis; nested lists stay whole.
std::vector<std::string> tuple_elements(std::string_view text) {
  std::vector<std::string> elements;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    const bool closes = c == ')' || c == ']';
    if (depth == 0 && (c == ',' || closes)) {
      const std::string element = trimmed(text.substr(begin, i - begin));
      if (!element.empty()) elements.push_back(element);
      begin = i + 1;
      if (closes) break;
    }
    if (closes) --depth;
  }
  return elements;
}

}  // namespace

std::optional<RecordedCall> recorded_call(const onnx::NodeProto& node) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() != kCallKey) continue;
    const std::string_view text = entry.value();
    const size_t target = text.find(kCallPrefix);
    const size_t arguments = text.find(kArguments);
    if (target == std::string_view::npos || arguments == std::string_view::npos) continue;
    const std::string_view name = text.substr(target + kCallPrefix.size());
    return RecordedCall{std::string(name.substr(0, name.find_first_of(".]"))),
                        tuple_elements(text.substr(arguments + kArguments.size()))};
  }
  return std::nullopt;
}

std::optional<int64_t> recorded_padding(const onnx::NodeProto& node) {
  const std::optional<RecordedCall> call = recorded_call(node);
  if (!call || call->op != "embedding" || call->arguments.size() < 3) return std::nullopt;
  const std::string& text = call->arguments[2];
  int64_t row = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
  const bool read = error == std::errc() && end == text.data() + text.size();
  return read && row >= 0 ? std::optional<int64_t>(row) : std::nullopt;
}

std::string recorded_module(const onnx::NodeProto& node) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() != kScopesKey) continue;
    // The modules from the outermost on, then the call.
    const std::vector<std::string> scopes = quoted(entry.value());
    if (scopes.size() >= 2) return scopes[scopes.size() - 2];
  }
  return "";
}

void record_folding(onnx::GraphProto& graph, const std::string& initializer,
                    const std::string& parameter) {
  auto* value = graph.add_value_info();
  value->set_name(initializer);
  auto* entry = value->add_metadata_props();
  entry->set_key(kFoldedKey);
  entry->set_value("['" + parameter + "']");
}

ExportRecord::ExportRecord(const onnx::GraphProto& graph) {
  for (const auto& entry : graph.metadata_props()) {
    if (entry.key() != kSignatureKey) continue;
    present_ = true;
    std::istringstream lines(entry.value());
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> target = quoted(line);
      if (target.empty()) continue;
      targets_[trimmed(line.substr(0, line.find(':')))] = target[0];
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

std::string ExportRecord::tensor_of(const std::string& argument) const {
  if (!argument.starts_with('%')) return "";
  const auto found = targets_.find(argument.substr(1));
  return found == targets_.end() ? "" : found->second;
}

std::vector<std::string> ExportRecord::folded_values(const std::string& initializer) const {
  const auto found = folded_from_.find(initializer);
  return found == folded_from_.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> ExportRecord::folded_parameters(const std::string& initializer) const {
  std::vector<std::string> parameters;
  const std::vector<std::string> values = folded_values(initializer);
  std::copy_if(values.begin(), values.end(), std::back_inserter(parameters),
               [this](const std::string& name) { return parameter_set_.count(name) != 0; });
  return parameters;
}

std::vector<std::string> ExportRecord::lost_parameters(const onnx::GraphProto& graph) const {
  std::set<std::string> held;
  for (const auto& tensor : graph.initializer()) {
    held.insert(tensor.name());
    for (const std::string& name : folded_parameters(tensor.name())) held.insert(name);
  }
  std::set<std::string> called;
  for (const auto& node : graph.node()) {
    const std::optional<RecordedCall> call = recorded_call(node);
    if (!call) continue;
    for (const std::string& argument : call->arguments) called.insert(tensor_of(argument));
  }
  std::vector<std::string> lost;
  std::copy_if(parameters_.begin(), parameters_.end(), std::back_inserter(lost),
               [&](const std::string& name) { return called.count(name) > held.count(name); });
  return lost;
}

}  // namespace sgtc
