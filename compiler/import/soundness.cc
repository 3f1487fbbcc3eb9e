#include "import/soundness.h"

#include <algorithm>
#include <set>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kNamedNodes = 3;

// "node "a"" or "nodes "a", "b", "c" and 9 more".
std::string named(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "node " : "nodes ";
  for (size_t i = 0; i < std::min(names.size(), kNamedNodes); ++i) {
    text += (i == 0 ? "\"" : ", \"") + names[i] + "\"";
  }
  if (names.size() > kNamedNodes) {
    text += " and " + std::to_string(names.size() - kNamedNodes) + " more";
  }
  return text;
}

void warn(const ImportState& state, const std::vector<std::string>& names,
          const std::string& text) {
  if (!names.empty()) state.diagnostics.warning(named(names), text);
}

std::vector<std::string> repeated_softmaxes(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kSoftmax && node.op != Op::kLogSoftmax) continue;
    if (!softmax_behind(graph, node.operands[0])) continue;
    names.push_back(node.sources.empty() ? graph.value(node.results[0]).name : node.sources[0]);
  }
  return names;
}

// All values that `loss` is computed from, whatever their types.
std::set<ValueId> values_behind(const Graph& graph, ValueId loss) {
  std::set<ValueId> behind{loss};
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool used = std::any_of(node.results.begin(), node.results.end(),
                                  [&](ValueId id) { return behind.count(id) != 0; });
    if (used) behind.insert(node.operands.begin(), node.operands.end());
  }
  return behind;
}

// Whether it may be a weight: masks and scales have few different values.
bool has_many_values(const Initializer& initial) {
  if (!initial.literal) return true;
  std::set<double> seen;
  for (int64_t i = 0; i < initial.literal->element_count() && seen.size() < 3; ++i) {
    seen.insert(initial.literal->as_double(i));
  }
  return seen.size() > 2;
}

void check_cut_tensors(const ImportState& state, ValueId loss) {
  const Graph& graph = state.graph;
  const std::set<ValueId> used = values_behind(graph, loss);
  const std::set<ValueId> reached = states_behind(graph, loss);
  for (ValueId id : graph.states) {
    const Value& value = graph.value(id);
    const bool cut = value.role == StateRole::kFrozen && used.count(id) != 0 &&
                     reached.count(id) == 0 && is_float(value.type.dtype);
    if (!cut || !has_many_values(value.initial)) continue;
    state.diagnostics.warning(
        "initializer \"" + value.name + "\"",
        "gets no gradient: the loss depends on it only through integers or booleans, as after a "
        "cast, a comparison or ArgMax; compute the loss without these, or say that it is meant so "
        "with --freeze");
  }
}

}  // namespace

const Node* softmax_behind(const Graph& graph, ValueId x) {
  const Node* node = graph.producer(x);
  while (node && (info(node->op).kind == OpKind::kMovement || node->op == Op::kCast) &&
         node->operands.size() == 1) {
    node = graph.producer(node->operands[0]);
  }
  return node && node->op == Op::kSoftmax ? node : nullptr;
}

void check_soundness(const ImportState& state, ValueId loss) {
  const ExportFaults& faults = state.faults;
  warn(state, faults.fixed_statistics,
       "BatchNormalization normalizes by its running statistics, as in inference, and training "
       "does not update these; export the model in training mode "
       "(torch.onnx.export(…, training=TrainingMode.TRAINING, do_constant_folding=False))");
  warn(
      state, faults.idle_dropouts,
      "Dropout drops nothing, since it is not in training mode; export the model in training mode, "
      "or remove it");
  warn(state, faults.probabilities,
       "the loss expects logarithms of probabilities and gets probabilities; put LogSoftmax in "
       "place of Softmax before it");
  warn(state, repeated_softmaxes(state.graph),
       "a softmax of what is a softmax already, which makes gradients far too small; a loss that "
       "applies softmax needs a model without one");
  check_cut_tensors(state, loss);
  check_tensor_soundness(state);
}

}  // namespace sgtc
