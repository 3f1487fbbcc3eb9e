#include "passes/anchor_tile.h"

namespace sgtc {

std::optional<AnchorTile> anchor_tile(Op op, size_t result_rank) {
  switch (op) {
    case Op::kMatMul: return AnchorTile{result_rank - 2, 1};
    case Op::kConv:
    case Op::kConvInputGrad: return AnchorTile{1, 1};
    case Op::kConvWeightGrad: return AnchorTile{0, 1};
    default: return std::nullopt;
  }
}

}  // namespace sgtc
