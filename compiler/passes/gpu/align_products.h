// Matrix products whose operands the copy engine of a GPU cannot read.
#pragma once

#include "ir/graph.h"

namespace sgtc::gpu {

/// Pads bfloat16 operands of large matmuls with zeros where their last dimension is no multiple of
/// 8 elements (a vocabulary of 50257), since Hopper's copy engine reads rows at multiples of 16
/// bytes. A padded depth is padded in both operands; of padded rows or columns the result is cut.
/// Values stay the same, and sums get further zeros alone. Runs after `simplify` and before common
/// subexpressions are eliminated: several products share a padded operand.
Graph align_products(Graph graph);

}  // namespace sgtc::gpu
