#include "import/node_cases.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "autodiff/differentiate.h"
#include "import/helper.h"
#include "import/import.h"
#include "import/tensor.h"
#include "ir/interpret.h"
#include "support/catch.h"
#include "support/file.h"
#include "support/glob.h"

namespace sgtc::testing {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> patterns_of(const std::string& name) {
  std::vector<std::string> patterns;
  std::ifstream file(fs::path(SGTC_SOURCE_DIR) / "tests/import" / name);
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    const std::string pattern = line.substr(0, line.find(' '));
    if (!pattern.empty() && pattern[0] != '#') patterns.push_back(pattern);
  }
  return patterns;
}

fs::path tensor_path(const NodeCase& node_case, const std::string& kind, int k) {
  return node_case.folder / "test_data_set_0" / (kind + "_" + std::to_string(k) + ".pb");
}

int64_t opset_of(const onnx::ModelProto& model) {
  int64_t version = 1;
  for (const auto& entry : model.opset_import()) {
    const std::string domain = canonical_domain(entry.domain());
    if (domain.empty()) version = entry.version();
    if (!domain.empty() && domain != "ai.onnx.preview.training") return kNewestOpset + 1;
  }
  return version;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
  return values;
}

double tolerance_of(DType dtype) {
  if (dtype == DType::kBFloat16) return 2e-2;
  return dtype == DType::kFloat16 ? 2e-3 : 1e-4;
}

LiteralPtr literal(onnx::TensorProto tensor) {
  const auto owner = std::make_shared<const onnx::TensorProto>(std::move(tensor));
  return literal_of(*owner, ExternalData("."), owner);
}

// The names of outputs that differ from the expected ones; throws Error when the import fails.
std::string differences(const NodeCase& node_case, bool constants) {
  onnx::ModelProto proto = node_case.model();
  if (constants) bind_inputs(proto, node_case);
  ImportOptions options;
  options.training = false;
  options.accepts_slow = true;
  options.gradients = append_gradients;
  for (const auto& output : proto.graph().output()) options.extra_outputs.push_back(output.name());
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "model.onnx", node_case.folder, diagnostics);
  const Graph graph = import_graph(model, options, diagnostics);
  verify(graph, "import");
  Interpreter interpreter(graph);
  for (int i = 0; i < proto.graph().input_size() && !constants; ++i) {
    interpreter.set(proto.graph().input(i).name(), Tensor(*literal(node_case.tensor("input", i))));
  }
  interpreter.run();
  std::string wrong;
  for (int i = 0; i < proto.graph().output_size(); ++i) {
    const LiteralPtr expected = literal(node_case.tensor("output", i));
    const Tensor& found = interpreter.output(proto.graph().output(i).name());
    const bool same =
        found.type.dtype == expected->dtype() &&
        element_count(found.type.shape) == element_count(expected->shape()) &&
        close(values_of(found), values_of(Tensor(*expected)), tolerance_of(expected->dtype()));
    if (!same) wrong += " " + proto.graph().output(i).name();
  }
  return wrong;
}

}  // namespace

onnx::ModelProto NodeCase::model() const {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(read_file((folder / "model.onnx").string())));
  return proto;
}

bool NodeCase::has_tensor(const std::string& kind, int k) const {
  return fs::exists(tensor_path(*this, kind, k));
}

onnx::TensorProto NodeCase::tensor(const std::string& kind, int k) const {
  onnx::TensorProto proto;
  REQUIRE(proto.ParseFromString(read_file(tensor_path(*this, kind, k).string())));
  return proto;
}

std::vector<NodeCase> node_cases(const char* variable, const std::string& skips) {
  const char* data = std::getenv(variable);
  if (!data) return {};
  const std::vector<std::string> patterns = patterns_of(skips);
  std::vector<NodeCase> cases;
  for (const fs::path& folder : std::set<fs::path>(fs::directory_iterator(data), {})) {
    const NodeCase node_case{folder};
    const bool skipped = std::any_of(
        patterns.begin(), patterns.end(),
        [&](const std::string& pattern) { return glob_matches(pattern, node_case.name()); });
    if (!skipped && opset_of(node_case.model()) <= kNewestOpset) cases.push_back(node_case);
  }
  return cases;
}

void bind_inputs(onnx::ModelProto& model, const NodeCase& node_case) {
  auto& graph = *model.mutable_graph();
  for (int i = graph.input_size() - 1; i >= 0; --i) {
    if (!node_case.has_tensor("input", i)) continue;
    onnx::TensorProto tensor = node_case.tensor("input", i);
    tensor.set_name(graph.input(i).name());
    *graph.add_initializer() = tensor;
  }
}

std::string forward_failure(const NodeCase& node_case) {
  std::string reason;
  for (const bool constants : {false, true}) {
    try {
      const std::string wrong = differences(node_case, constants);
      if (wrong.empty()) return "";
      return "differs in" + wrong;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  return reason;
}

}  // namespace sgtc::testing
