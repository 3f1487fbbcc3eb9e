// What the epilogue of an anchor takes and what it leaves to loops.
#pragma once

#include <vector>

#include "passes/group_graph.h"
#include "passes/kernel_target.h"

namespace sgtc {

/// By how many bytes a cast between floats widens an element; 0 for other nodes.
int64_t widening(const Graph& graph, const Node& node);

/// Whether a group is elementwise operators, movements and reductions.
bool is_loop(const GroupGraph& groups, GroupId id);

class EpilogueRules {
 public:
  /// `graph` must outlive the rules.
  EpilogueRules(const Graph& graph, const KernelTarget& target);

  /// Whether `consumer`, which reads a result of `anchor`, is better computed by its own readers,
  /// although the epilogue could.
  bool leaves(const GroupGraph& groups, GroupId anchor, GroupId consumer) const;

 private:
  bool belongs_to_rows(const GroupGraph& groups, GroupId anchor, GroupId consumer) const;
  bool belongs_to_reader(const GroupGraph& groups, GroupId anchor, GroupId consumer) const;

  const Graph& graph_;
  const KernelTarget& target_;
  std::vector<bool> reaches_reduction_;  // per node
};

/// Whether only the epilogue of `anchor` needs what `producer` computes.
bool serves_epilogue(const GroupGraph& groups, GroupId producer, GroupId anchor);

/// Whether a group has a reduction.
bool reduces(const Graph& graph, const Group& group);

}  // namespace sgtc
