// The cheapest nodes to run again so that a step fits its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recompute/recompute_problem.h"

namespace sgtc {

/// So few nodes that may run again are searched exactly.
inline constexpr size_t kExactNodes = 24;

/// Bounds on improving a choice by changing parts of it, in visited items: for one that is taken,
/// and for one that only tells what a step would take.
inline constexpr int64_t kChoiceWork = 40'000'000;
inline constexpr int64_t kEstimateWork = 1'000'000;

/// The cheapest choice found whose peak is at most `budget` bytes, or, if there is none, the one
/// with the lowest peak found. Exact where at most `exact_nodes` nodes may run again. Depends on
/// the arguments only.
RecomputeChoice choose_recompute(const RecomputeProblem& problem, int64_t budget,
                                 size_t exact_nodes = kExactNodes, int64_t work = kChoiceWork);

/// What layer by layer checkpointing does: of each part of the forward phase only what later parts
/// read is kept, and everything else that the backward phase needs is computed again. Parts end
/// where few bytes are live, and are as long as gives the lowest peak.
RecomputeChoice recompute_everything(const RecomputeProblem& problem);

}  // namespace sgtc
