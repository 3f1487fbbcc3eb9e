// The groups of a graph while fusion merges them.
#pragma once

#include <vector>

#include "passes/kernel.h"

namespace sgtc {

using GroupId = int32_t;

/// Starts with one group per node. Knows which groups depend on which and refuses no merge itself:
/// `would_cycle` tells whether one is legal.
class GroupGraph {
 public:
  explicit GroupGraph(const Graph& graph);

  const Graph& graph() const { return graph_; }
  GroupId group_of(NodeId node) const { return group_of_[static_cast<size_t>(node)]; }
  const Group& operator[](GroupId id) const { return groups_[static_cast<size_t>(id)]; }
  size_t size() const { return groups_.size(); }
  bool is_alive(GroupId id) const { return !groups_[static_cast<size_t>(id)].nodes.empty(); }

  /// Groups of the same phase that compute what `id` reads, nearest first.
  std::vector<GroupId> producers(GroupId id) const;
  /// Groups of the same phase that read what `id` computes, nearest first.
  std::vector<GroupId> consumers(GroupId id) const;
  /// Whether no other group of the same phase than `consumer` reads what `id` computes.
  bool has_one_consumer(GroupId id, GroupId consumer) const;
  /// Groups of `phase` that read the value and do not compute it, in execution order.
  std::vector<GroupId> readers(ValueId value, Phase phase) const;

  /// True if one of the two depends on the other through a third group.
  bool would_cycle(GroupId a, GroupId b) const;
  /// The group that both would become, with inputs and outputs.
  Group merged(GroupId a, GroupId b) const;
  /// Replaces `a` by `group`, which is what `merged` made of both, and removes `b`.
  void merge(GroupId a, GroupId b, Group group);

  /// The living groups, dependences first, ties by their last node.
  std::vector<Group> ordered() const;

 private:
  void set_interface(Group& group) const;
  bool is_needed_outside(const Group& group, ValueId value) const;
  bool reaches_through_third(GroupId from, GroupId to) const;
  bool contains(const Group& group, NodeId node) const;

  const Graph& graph_;
  std::vector<Users> users_;
  std::vector<bool> is_result_;  // per value: an output or the new value of a state
  std::vector<Group> groups_;
  std::vector<GroupId> group_of_;
};

}  // namespace sgtc
