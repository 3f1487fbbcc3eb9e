#include "passes/group_graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "passes/build_loop_nest.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

void append_unique(std::vector<ValueId>& list, ValueId value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

Group::Kind first_kind(Op op) {
  if (op == Op::kReshape) return Group::Kind::kView;
  if (op == Op::kShard) return Group::Kind::kShard;
  if (info(op).kind == OpKind::kCollective) return Group::Kind::kCollective;
  return is_loop_op(op) ? Group::Kind::kLoop : Group::Kind::kAnchor;
}

}  // namespace

GroupGraph::GroupGraph(const Graph& graph) : graph_(graph), users_(users_of(graph)) {
  is_result_.assign(graph.values.size(), false);
  for (const Output& output : graph.outputs) is_result_[static_cast<size_t>(output.value)] = true;
  for (const Update& update : graph.updates) is_result_[static_cast<size_t>(update.value)] = true;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    Group group;
    group.kind = first_kind(graph.node(id).op);
    group.phase = graph.node(id).phase;
    group.nodes = {id};
    if (group.kind == Group::Kind::kAnchor) group.anchor = id;
    set_interface(group);
    groups_.push_back(std::move(group));
    group_of_.push_back(id);
  }
}

bool GroupGraph::contains(const Group& group, NodeId node) const {
  return std::binary_search(group.nodes.begin(), group.nodes.end(), node);
}

// Results that nobody reads are computed only where they are an effect.
bool GroupGraph::is_needed_outside(const Group& group, ValueId value) const {
  if (is_result_[static_cast<size_t>(value)]) return true;
  const Node& producer = *graph_.producer(value);
  bool chained = false;
  for (NodeId user : users_[static_cast<size_t>(value)]) {
    if (!contains(group, user)) return true;
    chained = chained || graph_.node(user).op == Op::kAccumulate;
  }
  bool is_effect = info(producer.op).kind == OpKind::kMicroBatch;
  bool is_unread = users_[static_cast<size_t>(value)].empty();
  return (is_effect && !chained) || is_unread;
}

void GroupGraph::set_interface(Group& group) const {
  group.inputs.clear();
  group.outputs.clear();
  for (NodeId id : group.nodes) {
    const Node& node = graph_.node(id);
    for (ValueId operand : node.operands) {
      const Value& value = graph_.value(operand);
      bool inside = value.kind == ValueKind::kResult && contains(group, value.producer);
      if (!inside) append_unique(group.inputs, operand);
    }
    for (ValueId result : node.results) {
      if (is_needed_outside(group, result)) append_unique(group.outputs, result);
    }
  }
}

std::vector<GroupId> GroupGraph::producers(GroupId id) const {
  const Group& group = groups_[static_cast<size_t>(id)];
  std::vector<NodeId> nodes;
  for (ValueId input : group.inputs) {
    const Value& value = graph_.value(input);
    if (value.kind != ValueKind::kResult) continue;
    if (graph_.node(value.producer).phase == group.phase) nodes.push_back(value.producer);
  }
  std::sort(nodes.begin(), nodes.end(), std::greater<>());
  std::vector<GroupId> result;
  for (NodeId node : nodes) {
    GroupId producer = group_of(node);
    if (std::find(result.begin(), result.end(), producer) == result.end()) {
      result.push_back(producer);
    }
  }
  return result;
}

std::vector<GroupId> GroupGraph::readers(ValueId value, Phase phase) const {
  std::vector<GroupId> result;
  GroupId own = graph_.value(value).kind == ValueKind::kResult
                    ? group_of(graph_.value(value).producer)
                    : kNone;
  for (NodeId user : users_[static_cast<size_t>(value)]) {
    GroupId reader = group_of(user);
    bool is_new = reader != own && std::find(result.begin(), result.end(), reader) == result.end();
    if (is_new && graph_.node(user).phase == phase) result.push_back(reader);
  }
  return result;
}

std::vector<GroupId> GroupGraph::consumers(GroupId id) const {
  const Group& group = groups_[static_cast<size_t>(id)];
  std::vector<GroupId> result;
  for (ValueId output : group.outputs) {
    for (GroupId reader : readers(output, group.phase)) {
      if (std::find(result.begin(), result.end(), reader) == result.end()) {
        result.push_back(reader);
      }
    }
  }
  std::sort(result.begin(), result.end(), [&](GroupId a, GroupId b) {
    return (*this)[a].nodes.front() < (*this)[b].nodes.front();
  });
  return result;
}

bool GroupGraph::has_one_consumer(GroupId id, GroupId consumer) const {
  const Group& group = (*this)[id];
  const auto is_other = [&](NodeId user) {
    return graph_.node(user).phase == group.phase && group_of(user) != id &&
           group_of(user) != consumer;
  };
  return std::all_of(group.outputs.begin(), group.outputs.end(), [&](ValueId output) {
    const Users& users = users_[static_cast<size_t>(output)];
    return std::none_of(users.begin(), users.end(), is_other);
  });
}

// Edges run from lower to higher nodes, so a group whose first node lies behind the target's last
// one cannot lead there.
bool GroupGraph::reaches_through_third(GroupId from, GroupId to) const {
  const NodeId last = (*this)[to].nodes.back();
  const Phase phase = (*this)[from].phase;
  std::vector<bool> seen(groups_.size(), false);
  std::vector<GroupId> stack = {from};
  while (!stack.empty()) {
    const GroupId id = stack.back();
    stack.pop_back();
    for (ValueId output : (*this)[id].outputs) {
      for (NodeId user : users_[static_cast<size_t>(output)]) {
        if (graph_.node(user).phase != phase) continue;
        const GroupId reader = group_of(user);
        if (reader == id || (reader == to && id == from)) continue;
        if (reader == to) return true;
        if (seen[static_cast<size_t>(reader)] || (*this)[reader].nodes.front() > last) continue;
        seen[static_cast<size_t>(reader)] = true;
        stack.push_back(reader);
      }
    }
  }
  return false;
}

bool GroupGraph::would_cycle(GroupId a, GroupId b) const {
  return reaches_through_third(a, b) || reaches_through_third(b, a);
}

Group GroupGraph::merged(GroupId a, GroupId b) const {
  Group group;
  const Group& first = (*this)[a];
  const Group& second = (*this)[b];
  group.phase = first.phase;
  group.anchor = std::max(first.anchor, second.anchor);
  group.nodes.reserve(first.nodes.size() + second.nodes.size());
  std::merge(first.nodes.begin(), first.nodes.end(), second.nodes.begin(), second.nodes.end(),
             std::back_inserter(group.nodes));
  set_interface(group);
  bool views = first.kind == Group::Kind::kView && second.kind == Group::Kind::kView;
  group.kind = group.anchor != kNone               ? Group::Kind::kAnchor
               : views && group.inputs.size() == 1 ? Group::Kind::kView
                                                   : Group::Kind::kLoop;
  return group;
}

void GroupGraph::merge(GroupId a, GroupId b, Group group) {
  for (NodeId node : group.nodes) group_of_[static_cast<size_t>(node)] = a;
  groups_[static_cast<size_t>(a)] = std::move(group);
  groups_[static_cast<size_t>(b)] = {};
}

std::vector<Group> GroupGraph::ordered() const {
  std::vector<int64_t> waiting(groups_.size(), 0);
  using Key = std::tuple<Phase, NodeId, GroupId>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  auto push = [&](GroupId id) { ready.emplace((*this)[id].phase, (*this)[id].nodes.back(), id); };
  for (GroupId id = 0; id < static_cast<GroupId>(groups_.size()); ++id) {
    if (!is_alive(id)) continue;
    waiting[static_cast<size_t>(id)] = static_cast<int64_t>(producers(id).size());
    if (waiting[static_cast<size_t>(id)] == 0) push(id);
  }
  std::vector<Group> result;
  while (!ready.empty()) {
    GroupId id = std::get<2>(ready.top());
    ready.pop();
    result.push_back((*this)[id]);
    for (GroupId consumer : consumers(id)) {
      if (--waiting[static_cast<size_t>(consumer)] == 0) push(consumer);
    }
  }
  size_t alive = static_cast<size_t>(std::count_if(
      groups_.begin(), groups_.end(), [](const Group& group) { return !group.nodes.empty(); }));
  SGTC_CHECK(result.size() == alive, "fusion made groups depend on each other in a circle");
  return result;
}

}  // namespace sgtc
