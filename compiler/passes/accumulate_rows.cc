#include "passes/accumulate_rows.h"

#include <optional>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"

namespace sgtc {
namespace {

bool is_zeros(const Graph& graph, ValueId id) {
  const Node* node = graph.producer(id);
  if (node != nullptr && node->op == Op::kBroadcast) return is_zeros(graph, node->operands[0]);
  const std::optional<double> constant = uniform_constant(graph, id);
  return constant && *constant == 0;
}

// The scatter into zeros whose result `node` adds to an accumulator, if there is one and nothing
// else uses its result.
const Node* accumulated_scatter(const Graph& graph, const std::vector<int64_t>& uses,
                                const Node& node) {
  if (node.op != Op::kAccumulate) return nullptr;
  const ValueId sum = node.operands[1];
  const Node* scatter = graph.producer(sum);
  if (scatter == nullptr || scatter->op != Op::kScatterAdd) return nullptr;
  if (uses[static_cast<size_t>(sum)] != 1) return nullptr;
  return is_zeros(graph, scatter->operands[0]) ? scatter : nullptr;
}

}  // namespace

Graph accumulate_rows(Graph graph) {
  const std::vector<int64_t> uses = count_uses(graph);
  Cloner cloner(std::move(graph));
  const Graph& source = cloner.source();
  for (const Node& node : source.nodes) {
    const Node* scatter = accumulated_scatter(source, uses, node);
    if (scatter == nullptr) {
      cloner.clone(node);
      continue;
    }
    cloner.inherit(node);
    cloner.replace(
        node.results[0],
        cloner.target().add(
            Op::kAccumulateRows,
            {cloner[node.operands[0]], cloner[scatter->operands[1]], cloner[scatter->operands[2]]},
            {{"axis", scatter->attributes.integer("axis")}}, source.value(node.results[0]).name));
  }
  return cloner.finish();
}

}  // namespace sgtc
