// The gradients of ONNX's own node tests and of random ones: with the float inputs of a case
// trained, the derivative of a weighted sum of its outputs along random directions equals central
// differences, in double.
//
// The inputs are moved by small random numbers first, so that cases with equal elements or numbers
// on a bound, which have no derivative there, have one.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "autodiff/gradient_check.h"
#include "import/helper.h"
#include "import/import.h"
#include "import/node_cases.h"
#include "import/operator_lists.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

// The imported case with every float state trained, its values moved by up to 1/1000.
Graph trainable(const NodeCase& node_case) {
  onnx::ModelProto proto = node_case.model();
  bind_inputs(proto, node_case);
  ImportOptions options;
  options.training = false;
  options.accepts_slow = true;
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "model.onnx", node_case.folder, diagnostics);
  Graph graph = import_graph(model, options, diagnostics);
  std::uniform_real_distribution<double> noise(-1e-3, 1e-3);
  for (ValueId id : graph.states) {
    Value& value = graph.value(id);
    if (!is_float(value.type.dtype)) continue;
    value.role = StateRole::kParameter;
    std::mt19937 random(static_cast<unsigned>(value.name.size() * 64 + value.name.back()));
    std::vector<double> moved;
    for (int64_t i = 0; i < element_count(value.type.shape); ++i) {
      moved.push_back(value.initial.literal->as_double(i) + noise(random));
    }
    value.initial.literal = make_literal(value.type.dtype, value.type.shape, moved);
  }
  std::erase_if(graph.outputs,
                [&](const Output& output) { return !is_float(graph.dtype(output.value)); });
  return graph;
}

// Checks the gradients of all cases; returns the operators of those that have some.
std::set<std::string> differentiated(const std::vector<NodeCase>& cases) {
  std::set<std::string> shown;
  for (const NodeCase& node_case : cases) {
    INFO(node_case.name());
    Graph graph;
    try {
      graph = trainable(node_case);
    } catch (const Error&) {
      continue;  // the forward test's business
    }
    if (graph.outputs.empty() || graph.states.empty()) continue;
    std::string refusal;
    const std::optional<double> error = test::directional_error(graph, refusal);
    INFO(refusal);
    CHECK(refusal.empty());
    if (!error) continue;
    CHECK(*error < 1e-4);
    if (!(*error < 1e-4)) continue;
    const onnx::ModelProto model = node_case.model();
    for (const auto& node : model.graph().node()) shown.insert(node.op_type());
  }
  return shown;
}

}  // namespace

TEST_CASE("gradients of ONNX's node tests and of random models of one operator", "[node-data]") {
  std::set<std::string> shown =
      differentiated(node_cases("SGTC_ONNX_NODE_DATA", "node_gradient_skips.txt"));
  if (shown.empty()) return;
  shown.merge(differentiated(node_cases("SGTC_RANDOM_NODE_DATA", "random_data_skips.txt")));
  for (const std::string& op : documented_operators("With gradients")) {
    INFO(op);
    CHECK(shown.count(op) == 1);
  }
}

TEST_CASE("losses and their function bodies have equal gradients", "[node-data]") {
  const std::vector<NodeCase> cases = node_cases("SGTC_ONNX_NODE_DATA", "node_gradient_skips.txt");
  if (cases.empty()) return;
  int64_t compared = 0;
  for (const NodeCase& node_case : cases) {
    const bool is_loss = node_case.name().rfind("test_sce_", 0) == 0 ||
                         node_case.name().rfind("test_nllloss_", 0) == 0;
    const NodeCase expanded{node_case.folder.string() + "_expanded"};
    if (!is_loss || !std::filesystem::exists(expanded.folder)) continue;
    INFO(node_case.name());
    const auto plain = test::gradients(test::with_weighted_loss(trainable(node_case)));
    const auto opened = test::gradients(test::with_weighted_loss(trainable(expanded)));
    CHECK(opened.size() == plain.size());
    for (const auto& [name, gradient] : plain) CHECK(close(opened.at(name), gradient, 1e-9));
    ++compared;
  }
  CHECK(compared > 40);
}
