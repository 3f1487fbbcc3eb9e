// Partitions a graph into the groups of nodes that become kernels.
#pragma once

#include <vector>

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Groups in an order that respects every dependence, phases in sequence; every node is in exactly
/// one. Runs last of the graph passes: compositions are expanded, dead nodes gone.
/// - kAnchor: one operator from kernels/ and the elementwise nodes computed on its results.
/// - kView: only reshapes of one outside value; no code.
/// - kCollective: one collective.
/// - kShard: one shard of a state; no code.
/// - kLoop: everything else; `build_loop_nest` accepts the group.
/// A group holds at most one node with checked indices, so that a bad index names its node.
/// `part_of_node`: nodes of different parts never share a group; empty: all are of one part.
/// What is worth a merge depends on `target`.
std::vector<Group> fuse(const Graph& graph, const std::vector<int64_t>& part_of_node = {},
                        const KernelTarget& target = kCpuTarget);

/// One line per group: "loop forward: exp1, add2 (a, b) -> (y)". For tests and dumps.
std::string to_text(const Graph& graph, const std::vector<Group>& groups);

}  // namespace sgtc
