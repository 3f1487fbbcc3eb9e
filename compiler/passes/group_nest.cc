#include "passes/group_nest.h"

#include <algorithm>

#include "passes/anchor_tile.h"
#include "passes/build_loop_nest.h"
#include "passes/gpu/online_softmax.h"

namespace sgtc {
namespace {

// Epilogues see one element at a time and do not know the micro-batch.
bool fits_epilogue(Op op) {
  OpKind kind = info(op).kind;
  return kind != OpKind::kReduction && kind != OpKind::kRandom && op != Op::kStackMicroBatches;
}

}  // namespace

std::optional<LoopNest> group_nest(const Graph& graph, const Group& group,
                                   const KernelTarget& target) {
  NestRequest request;
  request.nodes = group.nodes;
  request.outputs = group.outputs;
  if (group.kind != Group::Kind::kAnchor) {
    std::optional<LoopNest> nest = build_loop_nest(graph, request);
    if (nest && target.is_gpu()) gpu::join_softmax_sums(*nest);
    return nest;
  }
  std::erase(request.nodes, group.anchor);
  bool fits = std::all_of(request.nodes.begin(), request.nodes.end(),
                          [&](NodeId node) { return fits_epilogue(graph.node(node).op); });
  if (!fits) return std::nullopt;
  const Node& anchor = graph.node(group.anchor);
  request.given = anchor.results[0];
  AnchorTile tile = *anchor_tile(graph, anchor);
  request.batch_dimensions = tile.batch_dimensions;
  request.row_dimensions = tile.row_dimensions;
  return build_loop_nest(graph, request);
}

}  // namespace sgtc
