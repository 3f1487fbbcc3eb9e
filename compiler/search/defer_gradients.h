// The order in which a backward phase computes gradients that are reduced over replicas.
//
// A reduction hides behind what is computed after its gradient. The last one has nothing to hide
// behind, and in a language model it is a large one: the gradient of an embedding needs the whole
// backward phase. But gradients of weights near the input can wait: nothing but the update reads
// them. So as many of these as fill the time of the large reduction are computed after it; their
// own reductions are small.
#pragma once

#include <cstdint>

#include "cost/hardware.h"
#include "passes/kernelized_graph.h"

namespace sgtc {

/// Reorders groups of the backward phase of a program of so many replicas; nothing else moves. What
/// is moved may keep its operands alive for as long.
void defer_gradients(KernelizedGraph& program, const Hardware& hardware, int64_t replicas);

}  // namespace sgtc
