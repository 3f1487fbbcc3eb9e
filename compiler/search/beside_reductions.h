// Which kernels run beside a reduction of gradients over replicas.
//
// A communication on a GPU is a kernel too: its blocks stay on multiprocessors of their own until
// every rank has done its part. A kernel with a block on each multiprocessor would then wait for
// its end, or keep it from starting, so kernels beside a reduction leave room, which costs them a
// little. All others take the whole GPU.
//
// The reductions' times are those of a simulation, and each is taken to last longer than predicted:
// a kernel that leaves room for nothing loses a few hundredths of its time, one that leaves none
// for a reduction that is still under way may take twice as long.
#pragma once

#include <vector>

#include "cost/hardware.h"
#include "schedule/build_plan.h"

namespace sgtc {

/// For each group of the training program whether a call of it runs beside a reduction, on any
/// position. Groups of the backward phase alone can.
std::vector<bool> groups_beside_reductions(const BuiltPlan& built, const KernelizedGraph& program,
                                           const Hardware& hardware);

}  // namespace sgtc
