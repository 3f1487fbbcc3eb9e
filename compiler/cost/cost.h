// Operations and bytes of graph nodes and kernels.
#pragma once

#include <cstdint>

#include "ir/tensor_bytes.h"
#include "passes/kernel.h"

namespace sgtc {

/// Arithmetic operations of one node. A multiply-add counts as two, as is usual for matmuls; an
/// elementwise operator counts one per result element whatever its latency, a reduction one per
/// operand element; movement and indexing count none except for the additions of scatters.
int64_t flops_of(const Graph& graph, const Node& node);

/// Sets `flops` (sum over the group's nodes) and `bytes` (each argument read and written once: the
/// least traffic that the kernel can have) of `kernel`. A gather counts the rows that it reads.
void fill_costs(const Graph& graph, const Group& group, KernelSpec& kernel);

}  // namespace sgtc
