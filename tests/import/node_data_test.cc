// ONNX's own node tests: forward of each operator through the import and the interpreter.
//
// SGTC_ONNX_NODE_DATA names a folder that write_node_data.py filled; the test is skipped without.
// A case is left out when its operator set is newer than 23 or when its name is in the list of
// skips, with the reason there.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
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

using namespace sgtc;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kNewestOpset = 23;

fs::path node_data() {
  const char* folder = std::getenv("SGTC_ONNX_NODE_DATA");
  return folder ? fs::path(folder) : fs::path();
}

// Patterns of skipped cases, one a line before a " # reason".
std::vector<std::string> skips() {
  std::vector<std::string> patterns;
  std::ifstream file(fs::path(SGTC_SOURCE_DIR) / "tests/import/node_data_skips.txt");
  for (std::string line; std::getline(file, line);) {
    const std::string pattern = line.substr(0, line.find(' '));
    if (!pattern.empty() && pattern[0] != '#') patterns.push_back(pattern);
  }
  return patterns;
}

onnx::TensorProto read_tensor(const fs::path& path) {
  onnx::TensorProto proto;
  REQUIRE(proto.ParseFromString(read_file(path.string())));
  return proto;
}

// Makes all inputs initializers: Reshape's shape and the like must be known when compiled.
void bind_constants(onnx::ModelProto& model, const fs::path& set) {
  auto& graph = *model.mutable_graph();
  for (int i = graph.input_size() - 1; i >= 0; --i) {
    const fs::path path = set / ("input_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) continue;
    onnx::TensorProto tensor = read_tensor(path);
    tensor.set_name(graph.input(i).name());
    *graph.add_initializer() = tensor;
  }
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

// The names of outputs that differ from the expected ones; throws Error when the import fails.
std::string differences(const fs::path& folder, bool constants) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(read_file((folder / "model.onnx").string())));
  const fs::path set = folder / "test_data_set_0";
  if (constants) bind_constants(proto, set);
  ImportOptions options;
  options.training = false;
  options.gradients = append_gradients;
  for (const auto& output : proto.graph().output()) options.extra_outputs.push_back(output.name());
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "model.onnx", folder, diagnostics);
  const Graph graph = import_graph(model, options, diagnostics);
  verify(graph, "import");
  Interpreter interpreter(graph);
  for (int i = 0; i < proto.graph().input_size() && !constants; ++i) {
    const onnx::TensorProto tensor = read_tensor(set / ("input_" + std::to_string(i) + ".pb"));
    const LiteralPtr literal = literal_of(tensor, ExternalData("."), nullptr);
    interpreter.set(proto.graph().input(i).name(), Tensor(*literal));
  }
  interpreter.run();
  std::string wrong;
  for (int i = 0; i < proto.graph().output_size(); ++i) {
    const onnx::TensorProto expected = read_tensor(set / ("output_" + std::to_string(i) + ".pb"));
    const LiteralPtr literal = literal_of(expected, ExternalData("."), nullptr);
    const Tensor& found = interpreter.output(proto.graph().output(i).name());
    const double tolerance = tolerance_of(literal->dtype());
    const bool same =
        found.type.dtype == literal->dtype() &&
        element_count(found.type.shape) == element_count(literal->shape()) &&
        sgtc::testing::close(values_of(found), values_of(Tensor(*literal)), tolerance);
    if (!same) wrong += " " + proto.graph().output(i).name();
  }
  return wrong;
}

int64_t opset_of(const fs::path& folder) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(read_file((folder / "model.onnx").string())));
  int64_t version = 1;
  for (const auto& entry : proto.opset_import()) {
    const std::string domain = canonical_domain(entry.domain());
    if (domain.empty()) version = entry.version();
    if (!domain.empty() && domain != "ai.onnx.preview.training") return kNewestOpset + 1;
  }
  return version;
}

// Empty when the case passes, with its inputs as feeds or else as constants.
std::string failure_of(const fs::path& folder) {
  std::string reason;
  for (const bool constants : {false, true}) {
    try {
      const std::string wrong = differences(folder, constants);
      if (wrong.empty()) return "";
      return "differs in" + wrong;
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  return reason;
}

}  // namespace

TEST_CASE("ONNX's node tests", "[node-data]") {
  const fs::path data = node_data();
  if (data.empty()) return;
  const std::vector<std::string> patterns = skips();
  int64_t passed = 0;
  std::set<fs::path> folders(fs::directory_iterator(data), {});
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    const bool skipped =
        std::any_of(patterns.begin(), patterns.end(),
                    [&name](const std::string& pattern) { return glob_matches(pattern, name); });
    if (skipped || opset_of(folder) > kNewestOpset) continue;
    const std::string failure = failure_of(folder);
    INFO(name << ": " << failure);
    CHECK(failure.empty());
    passed += failure.empty() ? 1 : 0;
  }
  CHECK(passed > 1000);
  for (const char* name : {"test_adam", "test_momentum", "test_nesterov_momentum", "test_adagrad",
                           "test_gradient_of_add", "test_gradient_of_add_and_mul"}) {
    CHECK(fs::exists(data / name));
  }
}
