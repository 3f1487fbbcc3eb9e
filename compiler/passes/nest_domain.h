// The domain of a nest: which dimensions its loops run over, and the order of its reductions.
#pragma once

#include <optional>
#include <vector>

#include "passes/build_loop_nest.h"

namespace sgtc {

struct NestDomain {
  Shape dimensions;
  std::vector<bool> reduced;  // per dimension
  ReductionOrder order = ReductionOrder::kNone;
  int64_t lane_extent = 1;  // kLanes: elements of the reduced suffix
};

/// The order in which a reduction of an operand of `shape` over `axes` must add up, and the extent
/// of the suffix that is spread over lanes. kNone when at most one element is reduced at a time.
ReductionOrder reduction_order(const Shape& shape, const std::vector<int64_t>& axes,
                               int64_t* lane_extent);

/// The value that is stored for an output: of stacked micro-batches, one micro-batch.
ValueId stored_value(const Graph& graph, ValueId output);

/// The operand of the largest reduction, else the given value, else the largest output.
NestDomain choose_domain(const Graph& graph, const NestRequest& request);

}  // namespace sgtc
