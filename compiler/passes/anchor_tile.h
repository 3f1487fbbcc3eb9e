// How anchors that end in a tile visitor walk their result.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace sgtc {

/// The result of an anchor as [batch, row, column]: its first `batch_dimensions` dimensions are the
/// batch, the next `row_dimensions` the rows, the rest the columns, each flattened row-major.
struct AnchorTile {
  size_t batch_dimensions = 0;
  size_t row_dimensions = 0;
};

/// Nothing for anchors that write their results themselves and have no epilogue.
/// matmul [.., M, N]: batch .., row M, column N. Convolutions and their input gradient
/// [N, C, spatial]: batch N, row C. Weight gradient [O, C/g, kernel]: no batch, row O.
std::optional<AnchorTile> anchor_tile(Op op, size_t result_rank);

}  // namespace sgtc
