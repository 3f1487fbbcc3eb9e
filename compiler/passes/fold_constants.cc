#include "passes/fold_constants.h"

#include <algorithm>

#include "ir/clone.h"
#include "ir/interpret.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 20;
constexpr int64_t kMostGenerated = 4096;

bool is_foldable(const Graph& graph, const Node& node) {
  const OpKind kind = info(node.op).kind;
  if (kind == OpKind::kRandom || kind == OpKind::kMicroBatch || kind == OpKind::kCollective) {
    return false;
  }
  const bool generated = node.op == Op::kIota || node.op == Op::kBroadcast;
  const int64_t limit = generated ? kMostGenerated : kMostElements;
  return std::all_of(node.results.begin(), node.results.end(),
                     [&](ValueId result) { return element_count(graph.shape(result)) <= limit; });
}

// The operands' literals; fewer than the operands when one is not a constant.
std::vector<LiteralPtr> constant_operands(Cloner& cloner, const Node& node) {
  std::vector<LiteralPtr> literals;
  for (const ValueId operand : node.operands) {
    const Value& value = cloner.target().value(cloner[operand]);
    if (value.kind == ValueKind::kConstant) literals.push_back(value.literal);
  }
  return literals;
}

// Returns whether the node was replaced by constants.
bool fold(Cloner& cloner, const Graph& graph, const Node& node) {
  if (!is_foldable(graph, node)) return false;
  const std::vector<LiteralPtr> operands = constant_operands(cloner, node);
  if (operands.size() != node.operands.size()) return false;
  std::vector<LiteralPtr> results;
  try {
    results = evaluate(node.op, operands, node.attributes);
  } catch (const Error&) {
    return false;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = graph.value(node.results[i]).name;
    cloner.replace(node.results[i], cloner.target().add_constant(results[i], name));
  }
  return true;
}

}  // namespace

Graph fold_constants(const Graph& graph) {
  Cloner cloner(graph);
  for (const Node& node : graph.nodes) {
    if (!fold(cloner, graph, node)) cloner.clone(node);
  }
  return cloner.finish();
}

}  // namespace sgtc
