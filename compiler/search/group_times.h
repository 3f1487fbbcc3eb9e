// What the kernels of a program cost, for comparing plans before they exist.
#pragma once

#include "partition/placement.h"
#include "recompute/find_problem.h"

namespace sgtc {

/// Predicted times of the groups on the program's target. Without measurements: rooflines of one
/// nominal core, an A100 or an H200 (docs/performance.md). Ratios matter, and are better than the
/// times themselves.
RerunCosts group_times(const KernelizedGraph& program);

/// Seconds in which the busiest position computes in one step.
double busy_seconds(const KernelizedGraph& program, const Placement& placement);

}  // namespace sgtc
