// What the kernels of a program cost, for choosing what runs again.
#pragma once

#include "cost/hardware.h"
#include "passes/kernelized_graph.h"
#include "recompute/find_problem.h"

namespace sgtc {

/// Predicted times of the groups' kernels on a rank with so many units of the hardware, and the
/// rates at which a loop computes and moves bytes there.
RerunCosts group_times(const KernelizedGraph& program, const Hardware& hardware, int64_t units);

}  // namespace sgtc
