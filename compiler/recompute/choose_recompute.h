// The cheapest nodes to run again so that a step fits its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recompute/recompute_problem.h"

namespace sgtc {

/// So few nodes that may run again are searched exactly.
inline constexpr size_t kExactNodes = 24;

/// The cheapest choice found whose peak is at most `budget` bytes, or, if there is none, the one
/// with the lowest peak found. Exact where at most `exact_nodes` nodes may run again. Depends on
/// the arguments only.
RecomputeChoice choose_recompute(const RecomputeProblem& problem, int64_t budget,
                                 size_t exact_nodes = kExactNodes);

/// What layer by layer checkpointing does: of each part of the forward phase only what later parts
/// read is kept, and everything else that the backward phase needs is computed again. Parts end
/// where few bytes are live, and are as long as gives the lowest peak.
RecomputeChoice recompute_everything(const RecomputeProblem& problem);

}  // namespace sgtc
