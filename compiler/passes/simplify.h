#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Rewrites nodes that do nothing or less than they seem to, without changing a value:
/// - x * 1, x / 1, x - 0, x + (-0) (and x + 0 for integers), where the shape stays;
/// - neg, logical_not and bit_not of themselves; cast to the same dtype;
/// - identities of reshape, transpose, broadcast, slice, pad, reduction over axes of size 1 (a sum
///   of one -0 is then -0), concat of one; reshape of reshape, transpose of transpose, broadcast of
///   broadcast; a transpose that only moves dimensions of size 1 is a reshape;
/// - a broadcast that an elementwise operator does by itself;
/// - a transpose of the last two dimensions that a matmul does by itself;
/// - a matmul of batches with one matrix: the batches are rows of one product, between reshapes;
/// - where with a constant condition;
/// - pow with a constant exponent: 1 is x, 2 is x * x, 0.5 is sqrt(x). This one deviates where the
///   result is exact in neither form (the last place), and 0.5 at -0 (-0 instead of 0) and -inf
///   (NaN instead of inf);
/// - x / c, for a constant c, that an exponential, erf, tanh, sigmoid or softplus takes: x * (1 / c),
///   which deviates in the last place, less than the function does.
/// Nodes and constants that are no longer used stay until `eliminate_dead_nodes`.
Graph simplify(Graph graph);

}  // namespace sgtc
