#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Turns attention that a model spells out as products and a softmax into the operator `attention`,
/// whose kernel never stores the scores, and makes the most of its flags and shared key heads, also
/// where the model has the operator. Runs before gradients, which then have a kernel too.
///
/// Recognised, for f32 and f64:
///   softmax(scale * q k^T + masks) v
/// - factors by constants, of q, of k and of the products, in any order below the masks;
/// - k, q and v transposed, and their leading dimensions cut or joined, in any order; leading
///   dimensions [], [N], [B,H] or [B,G,R], of which k and v may lack the last ones or repeat over
///   them (grouped heads);
/// - masks as an addition of what no parameter moves, or as where(condition, products, low) with
/// low
///   either -infinity, or at most -10000 with a constant condition that leaves each query a key.
///   A constant lower triangle becomes the flag `causal`, a mask that hides nothing goes;
/// - weights that are replaced by zero where they are NaN (as exporters write a softmax that gives
///   zeros to a query without a key): the flag `zero_empty`.
///
/// Left alone: scores or weights with other users, masks that are trained, dropout of the weights,
/// casts around the softmax and 16-bit types (they round the scores where the kernel does not).
///
/// Values change in rounding only, with two exceptions. A hidden score of -10000 or less, but
/// finite, counts as -infinity where it becomes `causal` or stands in a `where`: this differs where
/// all scores that a query sees are below -9896. And where weights are NaN because a score is NaN
/// or +infinity, the result is NaN although the model replaces such weights by zero; its gradient
/// is NaN in both forms.
Graph recognize_attention(Graph graph);

}  // namespace sgtc
