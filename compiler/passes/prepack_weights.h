#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Packs weights that many small products of a step read, once per step, into the panels that the
/// kernel of products on CPUs reads (MatmulShape::b_packed). The kernel else packs them in each
/// product: at 8 rows two fifths of the time, at 64 a sixth (docs/performance.md). The packed copy
/// takes the memory of the weight for the whole step. Bits do not change.
///
/// Weights are states, or movements of states, that are the second operand of products of f32 or
/// f64 matrices. Packed are those that at least 8 products of a step (nodes times micro-batches,
/// such as the time steps of a recurrent layer) of at most 128 rows read alike, transposed or not:
/// with 256 rows packing is a twentieth of the time.
Graph prepack_weights(Graph graph);

}  // namespace sgtc
