// Which values mixed precision keeps in bf16: an analysis of a whole step.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// What `mixed_precision` does to a graph; the reasons stand in narrow_values.cc.
struct NarrowValues {
  /// Per node: a product or attention that takes bf16 operands.
  std::vector<bool> products;
  /// Per value: an f32 value that is rounded where it is made, so that all read the rounded one.
  std::vector<bool> rounded;
};

/// `graph` is a step, or an evaluation, without compositions other than attention.
NarrowValues find_narrow_values(const Graph& graph);

/// Whether `op` is a product: matmul, conv or a gradient of conv.
bool is_product(Op op);
/// Whether `op` is a pool or a gradient of one.
bool is_pool(Op op);
/// Whether `op` copies elements of its first operand, and pads with or joins others of its type.
bool moves_elements(Op op);

}  // namespace sgtc
