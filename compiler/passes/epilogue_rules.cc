#include "passes/epilogue_rules.h"

#include <algorithm>
#include <set>

#include "passes/build_loop_nest.h"

namespace sgtc {
namespace {

// Whether `reader` or a group between the anchor and it can be in no epilogue.
bool waits_for_loop(const GroupGraph& groups, GroupId reader, GroupId anchor) {
  std::vector<GroupId> open = {reader};
  std::set<GroupId> seen = {reader, anchor};
  while (!open.empty()) {
    const GroupId id = open.back();
    open.pop_back();
    if (!is_loop(groups, id) || reduces(groups.graph(), groups[id])) return true;
    for (const GroupId producer : groups.producers(id)) {
      const bool follows = groups[producer].nodes.back() > groups[anchor].nodes.front();
      if (follows && seen.insert(producer).second) open.push_back(producer);
    }
  }
  return false;
}

// For each node whether loop operators of its phase lead to a reduction and none of them rounds.
std::vector<bool> ways_to_reductions(const Graph& graph) {
  const std::vector<Users> users = users_of(graph);
  std::vector<bool> reaches(graph.nodes.size(), false);
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (widening(graph, node) < 0) continue;
    for (const NodeId user : users[static_cast<size_t>(node.results[0])]) {
      if (graph.node(user).phase != node.phase || !is_loop_op(graph.node(user).op)) continue;
      if (info(graph.node(user).op).kind == OpKind::kReduction ||
          reaches[static_cast<size_t>(user)]) {
        reaches[static_cast<size_t>(id)] = true;
      }
    }
  }
  return reaches;
}

}  // namespace

int64_t widening(const Graph& graph, const Node& node) {
  if (node.op != Op::kCast) return 0;
  const DType from = graph.dtype(node.operands[0]);
  const DType to = graph.dtype(node.results[0]);
  return is_float(from) && is_float(to) ? size_of(to) - size_of(from) : 0;
}

bool is_loop(const GroupGraph& groups, GroupId id) {
  return groups.is_alive(id) &&
         (groups[id].kind == Group::Kind::kLoop || groups[id].kind == Group::Kind::kView);
}

bool reduces(const Graph& graph, const Group& group) {
  return std::any_of(group.nodes.begin(), group.nodes.end(),
                     [&](NodeId id) { return info(graph.node(id).op).kind == OpKind::kReduction; });
}

bool serves_epilogue(const GroupGraph& groups, GroupId producer, GroupId anchor) {
  const auto have_common = [](const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
  };
  const std::vector<ValueId>& outputs = groups[producer].outputs;
  return !have_common(outputs, groups.graph().node(groups[anchor].anchor).operands) &&
         !have_common(outputs, groups.merged(anchor, producer).outputs);
}

EpilogueRules::EpilogueRules(const Graph& graph, const KernelTarget& target)
    : graph_(graph), target_(target), reaches_reduction_(ways_to_reductions(graph)) {}

bool EpilogueRules::leaves(const GroupGraph& groups, GroupId anchor, GroupId consumer) const {
  return belongs_to_rows(groups, anchor, consumer) || belongs_to_reader(groups, anchor, consumer);
}

// Whether `consumer` reads a rounded value of the anchor on the way to a reduction, whose loop
// reads the rounded value anyway: the epilogue would store what that loop can compute.
bool EpilogueRules::belongs_to_rows(const GroupGraph& groups, GroupId anchor,
                                    GroupId consumer) const {
  const Group& group = groups[consumer];
  return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
    const Node& node = graph_.node(id);
    if (widening(graph_, node) <= 0) return false;
    const NodeId rounded = graph_.value(node.operands[0]).producer;
    return rounded != kNone && groups.group_of(rounded) == anchor &&
           reaches_reduction_[static_cast<size_t>(id)];
  });
}

// Whether on a CPU the epilogue would store one value more for `consumer`, although what that
// reads of the anchor is stored anyway and one loop alone reads the result, which can compute it:
// a loop that stays one, as it reduces or waits for what does. (On GPUs it was not measured.)
bool EpilogueRules::belongs_to_reader(const GroupGraph& groups, GroupId anchor,
                                      GroupId consumer) const {
  if (target_.is_gpu()) return false;
  const std::vector<GroupId> readers = groups.consumers(consumer);
  return readers.size() == 1 && is_loop(groups, readers[0]) &&
         waits_for_loop(groups, readers[0], anchor) &&
         groups.merged(anchor, consumer).outputs.size() > groups[anchor].outputs.size();
}

}  // namespace sgtc
