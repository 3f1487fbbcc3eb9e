#include "import/mark_backward_nodes.h"

#include <algorithm>
#include <set>

namespace sgtc {

void mark_backward_nodes(Graph& graph, const std::vector<NamedGradient>& gradients) {
  if (gradients.empty()) return;
  std::set<std::string> names;
  for (const NamedGradient& given : gradients) names.insert(given.gradient);
  std::vector<bool> forward(graph.values.size());
  for (const Output& output : graph.outputs) {
    if (names.count(output.name) == 0) forward[static_cast<size_t>(output.value)] = true;
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    const bool kept = node.phase != Phase::kForward ||
                      std::any_of(node.results.begin(), node.results.end(),
                                  [&](ValueId id) { return forward[static_cast<size_t>(id)]; });
    if (!kept) node.phase = Phase::kBackward;
    for (ValueId operand : node.operands) {
      if (kept) forward[static_cast<size_t>(operand)] = true;
    }
  }
}

}  // namespace sgtc
