// Places the buffers of a plan in its arena.
#pragma once

#include <vector>

#include "plan/format.h"
#include "schedule/build_plan.h"

namespace sgtc {

/// Sets the offsets of every position's buffers, its arena size and its predicted peak. What is
/// needed always comes first, in the order of the plan; then one region in which each schedule
/// places its own buffers, so that an evaluation uses the bytes of a training step. Where several
/// micro-batches are in the pipeline at once, the region begins with a frame for each (frames.h),
/// and buffers of a pass that lie in its frame get the scope slot. `uses` is that of BuiltPlan.
void assign_offsets(plan::Plan& plan, const std::vector<std::vector<BufferUse>>& uses);

}  // namespace sgtc
