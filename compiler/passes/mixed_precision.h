#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Mixed precision in bf16: products and attention of f32 operands take bf16 operands, and the
/// activations and gradients that reach memory are bf16 (narrow_values.h says which). Sums of
/// products stay f32 (`result=f32`), and so does everything else: states, gradients of parameters,
/// statistics, and what is computed in registers. Types of feeds, states, outputs and updates do
/// not change, nor does the update phase; values of other types than f32 are left alone.
///
/// `graph` is a step, or an evaluation, whose compositions other than attention are expanded and
/// whose common subexpressions are eliminated: a rounded value is widened for each use anew, so
/// that no kernel has to store what another can compute as it loads.
Graph mixed_precision(const Graph& graph);

}  // namespace sgtc
