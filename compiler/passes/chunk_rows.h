#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Computes scores of a vocabulary, their loss and all gradients of it for some rows of a batch
/// after others, in `count` chunks, so that memory never holds the scores of all rows.
///
/// Each region of rows (row_region.h) runs once per chunk, with its nodes of the forward and the
/// backward phase one behind the other: all are of its last phase then, and so is the loss that
/// follows. Rows of results are joined; sums over rows, such as the weight's gradient, are added up
/// in the order of the chunks, products of bf16 in f32. Nodes of chunks keep their ids, by which
/// fusion knows copies of one node and leaves them where they are. Runs when products have their
/// final types and shapes, and before fusion.
Graph chunk_rows(Graph graph, int64_t count);

/// Into how many chunks rows should be split: on a CPU, where it costs no time, so many, and at most
/// four, that each has enough rows to keep products fast, if a step takes at least 2% less memory
/// for it, else 1. On a GPU 1: a step would take 1 to 2% longer. Depends on the graph and the kind
/// of target alone, so bits do not depend on the mesh.
int64_t choose_row_chunks(const Graph& graph, const KernelTarget& target);

}  // namespace sgtc
