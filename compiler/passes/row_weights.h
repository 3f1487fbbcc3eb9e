// Weights of rows: 1 for a row of the data set, 0 for padding.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "autodiff/expressions.h"
#include "passes/batch_axis.h"
#include "support/diagnostics.h"

namespace sgtc {

/// The feed of the weights, f32 of shape [graph.micro_batch_rows], which the runtime fills itself.
inline constexpr const char* kRowWeights = "sgtc.row_weights";

/// Adds the feed kRowWeights to the graph of `e`.
ValueId add_row_weights(Expressions& e);

/// The operand of `node` whose rows it adds up; nothing if it does not reduce rows to a sum.
/// `facts` are those of find_batch_axes.
std::optional<size_t> summed_rows(const std::vector<BatchFact>& facts, const Node& node);

/// `x` times the weight of each row, in its dtype; the batch is the major part of dimension `dim`.
ValueId weigh_rows(Expressions& e, ValueId x, int64_t dim, ValueId weights);

/// Errors for what weights in sums cannot keep padding out of: statistics over the batch, and
/// inputs with several rows per sample. They name the node or the input.
void check_row_weights(const Graph& graph, const std::vector<BatchFact>& facts,
                       Diagnostics& diagnostics);

}  // namespace sgtc
