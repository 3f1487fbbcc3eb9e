// The best set of nodes to run again, of small problems.
#pragma once

#include <cstdint>
#include <optional>

#include "recompute/recompute_problem.h"

namespace sgtc {

/// The cheapest choice whose peak is at most `budget`, if it costs less than `known`, the price of
/// a choice that was found otherwise. If `known` does not fit either and nothing does: a choice
/// with the lowest peak, if that is lower. Nothing if `known` is the best, or if `steps` decisions
/// about single nodes did not find a better one.
///
/// Branches and bounds (Land and Doig, 1960): nodes are decided from the last to the first. The
/// readers of what a node makes are then decided before it, so that its costs are known at once,
/// and what is decided bounds the price of all ways to go on from below.
std::optional<RecomputeChoice> search_exactly(const RecomputeProblem& problem, int64_t budget,
                                              const RecomputeCost& known, int64_t steps);

}  // namespace sgtc
