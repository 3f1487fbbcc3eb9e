// How anchors that end in a tile visitor walk their result.
#pragma once

#include <cstddef>
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
std::optional<AnchorTile> anchor_tile(const Graph& graph, const Node& anchor);

}  // namespace sgtc
