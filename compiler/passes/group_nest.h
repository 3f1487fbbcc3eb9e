// The loop nest of a group.
#pragma once

#include <optional>

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// The whole body of a loop group, or the epilogue of an anchor that has a tile (anchor_tile.h).
/// Nothing when the nodes do not fit into one nest.
std::optional<LoopNest> group_nest(const Graph& graph, const Group& group,
                                   const KernelTarget& target = kCpuTarget);

}  // namespace sgtc
