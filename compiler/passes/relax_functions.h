#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Marks functions whose operands are no more precise than 16-bit floats (`approximate=1`): GPUs
/// then use instructions with a relative error of 2^-15 (kernels/math/hardware.h).
///
/// A value is that imprecise if it is f16 or bf16, or f32 and computed from such a value by
/// elementwise operators, movements, gathers, reductions and contractions. Marked are exp, tanh,
/// sigmoid, div, reciprocal, sqrt and rsqrt on f32 or narrower. Left exact: everything in the
/// update phase, whose states collect small differences; and quotients that are rounded to integers
/// or compared, where one unit in the last place can matter. Depends on the graph alone, so that
/// bits do not depend on fusion. Runs for GPUs, after the last pass that adds or merges values.
Graph relax_functions(Graph graph);

}  // namespace sgtc
