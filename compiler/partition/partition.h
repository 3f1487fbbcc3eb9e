// Cuts a training step into pipeline stages.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/hardware.h"
#include "partition/chain.h"
#include "partition/placement.h"

namespace sgtc {

/// What fusion has to keep apart, for a program that is to be cut: scalars of the update phase,
/// which every position computes, from the reductions that lead to them, which one does.
std::vector<int64_t> fusion_parts(const Graph& graph);

/// Places the groups of `program` on `stages` positions (stage s on position s), so that the
/// slowest stage is as fast as possible: forward and backward of its groups and the bytes that
/// cross its two ends, on a GPU or one core of the hardware and over its links within a host. Exact
/// for cuts of the forward groups in their order of execution; ties go to fewer bytes, and repeated
/// layers stay whole if that costs at most 1%. Groups are never cut.
///
/// Groups that need no parameter (masks, positions) are computed again on each stage that reads
/// them instead of being sent; views are taken there too. A backward group runs where the forward
/// nodes are that it differentiates. Values may skip stages; parameters may be held by several.
///
/// Throws Error if there are more stages than forward groups to place.
Placement partition(const KernelizedGraph& program, int64_t stages, const Hardware& hardware);

/// Where stages are cut, in terms that other groups of the same forward nodes share: each stage but
/// the first begins with the first forward group, in order of execution, that has this node or a
/// later one.
using StageBegins = std::vector<NodeId>;

/// The same with given cuts. Stages that would be empty take a group of the next one.
Placement partition_at(const KernelizedGraph& program, const StageBegins& begins,
                       const Hardware& hardware);

/// The cuts of a placement that was made by them.
StageBegins begins_of(const KernelizedGraph& program, const Placement& placement);

/// The links of a program's chain (chain.h) behind which it may be cut well: between repeated
/// layers once per layer, elsewhere before each; 0 is none of them.
std::vector<size_t> good_cuts(const KernelizedGraph& program, const Chain& chain);

/// The cut before a link.
NodeId begin_of(const KernelizedGraph& program, const Chain& chain, size_t link);

/// The seconds of one micro-batch in the slowest stage of a placement, by the model of `partition`.
double slowest_stage(const KernelizedGraph& program, const Placement& placement,
                     const Hardware& hardware);

}  // namespace sgtc
