#pragma once

#include "ir/graph.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Prepares movements for operators whose kernels take strides (anchor_layouts.h), so that fusion
/// finds both in one place:
/// - movements of an operand that a kernel can read through become its own, since values with
///   several readers, as q, k and v in both passes of attention, would be stored;
/// - what movements make of a result is what is stored, and such operators read the result from it;
/// - a concat whose parts are all results of such operators becomes places, which write one tensor
///   part by part.
/// Last before fusion: common subexpressions would be joined again.
Graph sink_movements(Graph graph, const KernelTarget& target);

}  // namespace sgtc
