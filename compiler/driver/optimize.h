// From gradients to kernels: the passes that training and evaluation share, in their order.
#pragma once

#include <cstdint>
#include <vector>

#include "driver/pass_runner.h"
#include "ir/graph.h"
#include "passes/form_kernels.h"
#include "passes/kernelized_graph.h"

namespace sgtc {

struct OptimizedGraph {
  Graph graph;
  int64_t row_chunks = 1;  // of chunk_rows
};

/// The passes from gradients to fusion. `mixed`: products and what memory keeps are in bf16.
/// `row_chunks`: for chunk_rows; 0: chosen.
OptimizedGraph optimize(Graph graph, bool mixed, int64_t row_chunks, const KernelTarget& target,
                        PassRunner& passes);

/// From a final graph to kernels. Groups are never cut or merged after this.
KernelizedGraph form_program(const Graph& graph, const std::vector<int64_t>& stage_of_node,
                             int64_t first_checked, const KernelTarget& target,
                             KernelFormer& former, PassRunner& passes);

/// Thread blocks of a GPU that a communicator may have: enough for half of what NVLink can do, and
/// few enough that kernels beside it lose little.
inline constexpr int64_t kCommunicationBlocks = 8;

/// Forms the kernels of these groups once more, for a GPU whose communicators have blocks too.
void leave_room(KernelizedGraph& program, const std::vector<bool>& groups, KernelFormer& former);

}  // namespace sgtc
