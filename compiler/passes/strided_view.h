// Values that are other values with strides: what reshapes, transposes, slices and broadcasts make
// of a stored tensor without moving an element. Kernels that take strides read and write through
// them, so the movements cost nothing.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// Element (i, j, …) of a value is element offset + i * strides[0] + j * strides[1] + … of the
/// row-major tensor `base`.
struct StridedView {
  ValueId base = kNone;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one per dimension of the value
};

/// The strides of a tensor of `shape` with `strides` after a reshape to `to`. Nothing where its
/// elements would have to move. No size may be 0.
std::optional<std::vector<int64_t>> reshaped_strides(const Shape& shape,
                                                     const std::vector<int64_t>& strides,
                                                     const Shape& to);

/// `id` as movements among `nodes` (in ascending order) make it of a value from outside of them.
/// Nothing where one of them is no view or moves a tensor without elements.
std::optional<StridedView> operand_view(const Graph& graph, ValueId id,
                                        const std::vector<NodeId>& nodes);

/// The layout of what `moves`, a chain of reshapes and transposes in ascending order, start with,
/// given that of the last one's result.
std::optional<StridedView> part_view(const Graph& graph, const std::vector<NodeId>& moves,
                                     StridedView view);

/// Where the result `id` is stored when each of `nodes` that uses it, and what it becomes, is a
/// reshape, a transpose or a place. The base is the last value of that chain, or for a place into
/// a value from outside, that value. Nothing where one of them is no view.
std::optional<StridedView> result_view(const Graph& graph, ValueId id,
                                       const std::vector<NodeId>& nodes);

}  // namespace sgtc
