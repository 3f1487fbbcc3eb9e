// Where an evaluation runs, given where training does.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/placement.h"

namespace sgtc {

/// The stage of each node of `evaluation`: that of the training groups that come from the same
/// nodes of the model and not before any position that computes an operand or holds a state that it
/// reads. -1 for nodes that need no state, directly or not: they run wherever they are read. Fusion
/// keeps the stages apart.
std::vector<int64_t> evaluation_stages(const Graph& evaluation, const KernelizedGraph& train,
                                       const Placement& placement);

/// Places the groups of `evaluation`, which were fused by `stages`. States are held where training
/// holds them.
Placement place_evaluation(const KernelizedGraph& evaluation, const std::vector<int64_t>& stages,
                           const KernelizedGraph& train, const Placement& placement);

}  // namespace sgtc
