// Describes the code of each fused group.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// Nodes that check indices at run time, in execution order: index `i` here is checked node `i` of
/// the plan.
std::vector<NodeId> checked_nodes(const Graph& graph);

/// The kernel of a group that is not a view. Arguments: those of the nest (in the order in which
/// its loads and stores name them), then the anchor's operands and results that the nest does not
/// touch, then the status block if an index is checked. Workspace, flags and table, where a GPU
/// kernel needs them, come last.
///
/// `value` of an argument: what is read as seen from outside the group, or the result that is
/// written. An accumulator is one argument with mode kUpdate whose value is operand 0 of its first
/// accumulate in the group; the results of accumulate are the same memory. The result of
/// stack_micro_batches is written one part per micro-batch.
///
/// `first_checked` is the number of the plan's checked nodes that come before this graph's.
KernelSpec form_kernel(const Graph& graph, const Group& group, int64_t first_checked = 0,
                       const KernelTarget& target = kCpuTarget);

/// Forms many kernels like form_kernel. What follows from a kernel's code, above all which of the
/// kernels in kernels/ an anchor becomes and its table of work, is found once for all that are
/// equal: layers repeat within a step, and steps that are planned again are nearly the same.
class KernelFormer {
 public:
  KernelSpec form(const Graph& graph, const Group& group, int64_t first_checked,
                  const KernelTarget& target);

 private:
  /// One kernel each, by target and code before the launch.
  std::unordered_map<std::string, KernelSpec> known_;
};

}  // namespace sgtc
