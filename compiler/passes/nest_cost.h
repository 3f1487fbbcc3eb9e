// A rough price of a nest on a CPU: what fusion compares.
#pragma once

#include "passes/loop_nest.h"

namespace sgtc {

/// CPU cycles of one thread for all blocks, the launch included. Counts vectors per sweep, the
/// price of each operator, and memory traffic; later sweeps over a row find it in the cache.
double estimate_cycles(const LoopNest& nest);

/// Cycles of an elementwise operator on a vector of 16 elements.
double compute_cycles(Op op);

/// Cycles for a byte that a kernel reads from memory, or writes there.
inline constexpr double kCyclesPerMemoryByte = 0.25;

/// What launching a kernel costs, in the same unit.
inline constexpr double kLaunchCycles = 4000;

}  // namespace sgtc
