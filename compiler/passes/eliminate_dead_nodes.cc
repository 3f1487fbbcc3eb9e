#include "passes/eliminate_dead_nodes.h"

#include <algorithm>
#include <utility>

#include "ir/clone.h"

namespace sgtc {
namespace {

bool is_always_kept(const Value& value) {
  if (value.kind == ValueKind::kFeed) return true;
  if (value.kind != ValueKind::kState) return false;
  return value.role != StateRole::kMoment && value.role != StateRole::kAccumulator;
}

bool is_live(const std::vector<bool>& live, const Node& node) {
  return std::any_of(node.results.begin(), node.results.end(),
                     [&](ValueId result) { return live[static_cast<size_t>(result)]; });
}

// For each value whether an output, an update or a rule of `is_always_kept` needs it.
std::vector<bool> live_values(const Graph& graph) {
  std::vector<bool> live;
  for (const Value& value : graph.values) live.push_back(is_always_kept(value));
  const auto mark = [&](ValueId id) { live[static_cast<size_t>(id)] = true; };
  for (const Output& output : graph.outputs) mark(output.value);
  for (const Update& update : graph.updates) {
    mark(update.state);
    mark(update.value);
  }
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!is_live(live, *node)) continue;
    for (const ValueId operand : node->operands) mark(operand);
  }
  return live;
}

}  // namespace

Graph eliminate_dead_nodes(Graph graph) {
  const std::vector<bool> live = live_values(graph);
  Cloner cloner(std::move(graph), live);
  for (const Node& node : cloner.source().nodes) {
    if (is_live(live, node)) cloner.clone(node);
  }
  return cloner.finish();
}

}  // namespace sgtc
