// A graph with the kernels that compute it: what scheduling starts from.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "passes/kernel.h"

namespace sgtc {

/// `groups` are in execution order; `kernels[i]` is the kernel of `groups[i]` (unused for views).
/// The graph must outlive this.
struct KernelizedGraph {
  const Graph* graph = nullptr;
  std::vector<Group> groups;
  std::vector<KernelSpec> kernels;
};

}  // namespace sgtc
