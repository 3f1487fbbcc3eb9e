// A graph with the kernels that compute it: what scheduling starts from.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// `groups` are in execution order; `kernels[i]` is the kernel of `groups[i]` (unused for views).
/// The graph must outlive this.
struct KernelizedGraph {
  const Graph* graph = nullptr;
  KernelTarget target;
  std::vector<Group> groups;
  std::vector<KernelSpec> kernels;
};

/// Per value: the group that computes it, or kNone for leaves.
inline std::vector<int32_t> makers_of(const KernelizedGraph& program) {
  std::vector<int32_t> makers(program.graph->values.size(), kNone);
  for (size_t g = 0; g < program.groups.size(); ++g) {
    for (const NodeId node : program.groups[g].nodes) {
      for (const ValueId result : program.graph->node(node).results) {
        makers[static_cast<size_t>(result)] = static_cast<int32_t>(g);
      }
    }
  }
  return makers;
}

}  // namespace sgtc
