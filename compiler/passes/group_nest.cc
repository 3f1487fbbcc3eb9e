#include "passes/group_nest.h"

#include <algorithm>

#include "passes/anchor_tile.h"
#include "passes/build_loop_nest.h"

namespace sgtc {
namespace {

bool has_reduction(const Graph& graph, const std::vector<NodeId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    return info(graph.node(node).op).kind == OpKind::kReduction;
  });
}

}  // namespace

std::optional<LoopNest> group_nest(const Graph& graph, const Group& group) {
  NestRequest request;
  request.nodes = group.nodes;
  request.outputs = group.outputs;
  if (group.kind != Group::Kind::kAnchor) return build_loop_nest(graph, request);
  std::erase(request.nodes, group.anchor);
  if (has_reduction(graph, request.nodes)) return std::nullopt;
  const Node& anchor = graph.node(group.anchor);
  request.given = anchor.results[0];
  AnchorTile tile = *anchor_tile(graph, anchor);
  request.batch_dimensions = tile.batch_dimensions;
  request.row_dimensions = tile.row_dimensions;
  return build_loop_nest(graph, request);
}

}  // namespace sgtc
