#include "passes/anchor_tile.h"

#include "passes/anchor_geometry.h"

namespace sgtc {

std::optional<AnchorTile> anchor_tile(const Graph& graph, const Node& anchor) {
  const TensorType& result = graph.type(anchor.results[0]);
  if (!anchor_visits_tiles(anchor.op, result.dtype)) return std::nullopt;
  switch (anchor.op) {
    case Op::kMatMul:
      return AnchorTile{result.shape.size() - 2, 1};
    case Op::kConvWeightGrad:
      return AnchorTile{0, 1};
    default:
      return AnchorTile{1, 1};
  }
}

}  // namespace sgtc
