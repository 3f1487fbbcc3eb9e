#include "passes/fold_constants.h"

#include <algorithm>
#include <memory>
#include <utility>

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
std::vector<LiteralPtr> constant_operands(const Cloner& cloner, const Node& node) {
  std::vector<LiteralPtr> literals;
  for (const ValueId operand : node.operands) {
    const Value& value = cloner.made().value(cloner[operand]);
    if (value.kind == ValueKind::kConstant) literals.push_back(value.literal);
  }
  return literals;
}

void replace(Cloner& cloner, const Graph& graph, ValueId result, LiteralPtr literal) {
  const std::string& name = graph.value(result).name;
  cloner.replace(result, cloner.target().add_constant(std::move(literal), name));
}

// What has no elements does not depend on anything, and nobody would read what its kernel is sent.
// Updates stay, which all read what steps are given.
bool fold_empty(Cloner& cloner, const Graph& graph, const Node& node) {
  if (node.phase == Phase::kUpdate) return false;
  const bool empty = std::all_of(node.results.begin(), node.results.end(), [&](ValueId result) {
    return element_count(graph.shape(result)) == 0;
  });
  if (!empty) return false;
  for (const ValueId result : node.results) {
    const TensorType& type = graph.type(result);
    replace(cloner, graph, result, std::make_shared<Literal>(type.dtype, type.shape));
  }
  return true;
}

// Returns whether the node was replaced by constants.
bool fold(Cloner& cloner, const Graph& graph, const Node& node) {
  if (!is_foldable(graph, node)) return false;
  if (fold_empty(cloner, graph, node)) return true;
  const std::vector<LiteralPtr> operands = constant_operands(cloner, node);
  if (operands.size() != node.operands.size()) return false;
  std::vector<LiteralPtr> results;
  try {
    results = evaluate(node.op, operands, node.attributes);
  } catch (const Error&) {
    return false;
  }
  for (size_t i = 0; i < results.size(); ++i) replace(cloner, graph, node.results[i], results[i]);
  return true;
}

}  // namespace

Graph fold_constants(Graph graph) {
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) {
    if (!fold(cloner, cloner.source(), node)) cloner.clone(node);
  }
  return cloner.finish();
}

}  // namespace sgtc
