// Fusion decides which nodes share a kernel.
//
// The problem: memory traffic and launches dominate everything but contractions, so neighbours
// should share loops; but a merged loop must exist (one domain, one reduction order), must not make
// the groups depend on each other in a circle, and must not cost more than it saves, for instance
// by computing an expensive value once per element of a larger domain.
//
// Two known approaches: pattern lists (predictable, and blind to everything not foreseen) and
// global search over partitions (optimal for the model, slow, and the model is rough). Here: greedy
// merging where legality is not a set of rules about operators but the question "does the LoopNest
// of both build?", and profit is "does the merged nest cost at most as much as the two?" under one
// simple price model (nest_cost.h, for GPUs gpu/nest_time.h). Three rounds, each in execution
// order, so the result is deterministic:
//   1. Anchors take elementwise consumers as their epilogue: the result is still in registers; and
//      elementwise producers of what the epilogue alone reads. First, since a contraction's result
//      is the most expensive one to write and read again. A sum of products goes to the last
//      of them, so that several are added up as they come and not kept until the last one does. But
//      casts to a wider type belong to the loads of their readers, so that no product stores what
//      it has narrowed. Those whose kernels take strides take the movements around them
//      (anchor_layouts.h), before others store what these would read.
//   2. Loops take their producers.
//   3. Loops that read the same large value merge, if neither depends on the other. What runs again
//      in the backward phase stays near its readers: copies of all layers may read one value, such
//      as a table of angles, and one loop of them would compute all layers before the first. On
//      CPUs the sums over rows of one layer's gradients merge too, which then wait for the last of
//      them.
// On a GPU loops of one form become one launch when they are scheduled (schedule/merge_calls.h), so
// the update keeps what it does to each tensor alike and apart from what it does with scalars: a
// norm's sum of squares goes on in no sum, where each would wait for the one before, and scalars
// that several updates read are in none of them.
// Left out: prologues of anchors, and reductions in epilogues. Every node is in one group; where a
// cheap producer should be computed again in several consumers, recompute_elementwise has given
// each its own.
#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "passes/anchor_layouts.h"
#include "passes/anchor_tile.h"
#include "passes/build_loop_nest.h"
#include "passes/epilogue_rules.h"
#include "passes/gpu/nest_time.h"
#include "passes/group_graph.h"
#include "passes/group_nest.h"
#include "passes/nest_cost.h"
#include "support/diagnostics.h"
#include "support/layer_name.h"

namespace sgtc {
namespace {

constexpr size_t kMaxArguments = 30;
constexpr size_t kMaxBody = 200;
// The same of scalars alone in the update on a GPU, where a launch takes longer than all of them.
constexpr size_t kMaxScalarArguments = 160;
constexpr size_t kMaxScalarBody = 1000;
constexpr double kRowSlack = 1.05;
constexpr int64_t kFewPerRow = 64;         // elements of a row
constexpr int64_t kSharedElements = 1024;  // smaller values are not worth a merge of siblings

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<int64_t>& part_of_node, const KernelTarget& target)
      : groups_(graph), rules_(graph, target), part_of_node_(part_of_node), target_(target) {
    find_copies();
    for (GroupId id = 0; id < static_cast<GroupId>(groups_.size()); ++id) {
      std::optional<double> cost = cost_of(groups_[id]);
      SGTC_CHECK(cost.has_value(), "no loop nest for operator " +
                                       std::string(name_of(graph.node(id).op)) + " of value " +
                                       graph.value(graph.node(id).results[0]).name);
      costs_.push_back(*cost);
    }
  }

  std::vector<Group> run() {
    const auto count = static_cast<GroupId>(groups_.size());
    for (GroupId id = count; id-- > 0;) join_reader(id);
    for (GroupId id = 0; id < count; ++id) take_movements(id);
    for (GroupId id = count; id-- > 0;) take_sum(id);
    for (GroupId id = 0; id < count; ++id) grow_epilogue(id);
    for (GroupId id = 0; id < count; ++id) take_producers(id);
    merge_siblings();
    merge_sums_of_layers();
    return groups_.ordered();
  }

 private:
  // Nothing if the group has no nest or too large a one.
  std::optional<double> cost_of(const Group& group) const {
    if (!has_code(group)) return 0;
    const Graph& graph = groups_.graph();
    if (has_strides(group)) {
      return anchor_layouts(graph, group) ? std::optional(kLaunchCycles) : std::nullopt;
    }
    if (group.kind == Group::Kind::kAnchor && !has_tile(group)) {
      if (group.nodes.size() > 1) return std::nullopt;
      return kLaunchCycles;
    }
    std::optional<LoopNest> nest = group_nest(graph, group, target_);
    if (!nest) return std::nullopt;
    const bool has_room = is_gpu_update(group) && has_scalars_alone(group);
    bool too_large = nest->arguments.size() > (has_room ? kMaxScalarArguments : kMaxArguments) ||
                     nest->expressions.size() > (has_room ? kMaxScalarBody : kMaxBody);
    if (too_large && group.nodes.size() > 1) return std::nullopt;
    return target_.is_gpu() ? gpu::estimate_nanoseconds(*nest) : estimate_cycles(*nest);
  }

  bool is_gpu_update(const Group& group) const {
    return target_.is_gpu() && group.phase == Phase::kUpdate;
  }

  bool has_scalars_alone(const Group& group) const {
    const Graph& graph = groups_.graph();
    return std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
      const Node& node = graph.node(id);
      return info(node.op).kind != OpKind::kReduction &&
             std::all_of(node.results.begin(), node.results.end(),
                         [&](ValueId result) { return element_count(graph.shape(result)) == 1; });
    });
  }

  // Whether one of the two computes scalars that are not for the other one alone.
  bool stays_apart(GroupId a, GroupId b) const {
    if (!is_gpu_update(groups_[a])) return false;
    const bool has_scalars = has_scalars_alone(groups_[a]);
    if (has_scalars == has_scalars_alone(groups_[b])) return false;
    return has_scalars ? !groups_.has_one_consumer(a, b) : !groups_.has_one_consumer(b, a);
  }

  bool has_tile(const Group& group) const {
    const Graph& graph = groups_.graph();
    return anchor_tile(graph, graph.node(group.anchor)).has_value();
  }

  bool has_strides(const Group& group) const {
    return group.kind == Group::Kind::kAnchor &&
           takes_strides(groups_.graph().node(group.anchor).op, target_);
  }

  bool try_merge(GroupId a, GroupId b) {
    auto attempt = std::make_tuple(a, b, groups_[a].nodes.size(), groups_[b].nodes.size());
    if (!attempts_.insert(attempt).second || stays_apart(a, b)) return false;
    Group group = groups_.merged(a, b);
    if (!is_one_part(group)) return false;
    if (checked_count(group) > 1 || groups_.would_cycle(a, b)) return false;
    std::optional<double> cost = cost_of(group);
    double apart = costs_[static_cast<size_t>(a)] + costs_[static_cast<size_t>(b)];
    if (!cost || *cost > apart * (is_about_rows(a, b) ? kRowSlack : 1)) return false;
    groups_.merge(a, b, std::move(group));
    costs_[static_cast<size_t>(a)] = *cost;
    return true;
  }

  // Whether one of the two computes numbers per row of the other. On CPUs, where a number is no
  // vector, they may cost a little more together: only then can a loop over the elements that needs
  // these numbers join them.
  bool is_about_rows(GroupId a, GroupId b) const {
    if (target_.is_gpu()) return false;
    const int64_t first = most_elements(groups_[a]), second = most_elements(groups_[b]);
    return std::min(first, second) * kFewPerRow <= std::max(first, second);
  }

  int64_t most_elements(const Group& group) const {
    int64_t most = 0;
    for (const std::vector<ValueId>* values : {&group.inputs, &group.outputs}) {
      for (const ValueId value : *values) {
        most = std::max(most, element_count(groups_.graph().shape(value)));
      }
    }
    return most;
  }

  int64_t checked_count(const Group& group) const {
    return std::count_if(group.nodes.begin(), group.nodes.end(), [&](NodeId node) {
      return info(groups_.graph().node(node).op).kind == OpKind::kIndexing;
    });
  }

  bool is_one_part(const Group& group) const {
    return part_of_node_.empty() ||
           std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId node) {
             return part_of_node_[static_cast<size_t>(node)] ==
                    part_of_node_[static_cast<size_t>(group.nodes.front())];
           });
  }

  bool is_loop(GroupId id) const { return sgtc::is_loop(groups_, id); }

  using Neighbours = std::vector<GroupId> (GroupGraph::*)(GroupId) const;

  // A cast to a wider float that one loop reads, reshaped or not, is a part of its loads.
  void join_reader(GroupId id) {
    const Graph& graph = groups_.graph();
    const Node* node = &graph.node(id);
    while (node != nullptr && node->op == Op::kReshape) node = graph.producer(node->operands[0]);
    if (node == nullptr || widening(graph, *node) <= 0) return;
    const std::vector<GroupId> readers = groups_.consumers(id);
    if (readers.size() == 1 && is_loop(readers[0])) try_merge(readers[0], id);
  }

  bool is_anchor(GroupId id) const {
    return groups_.is_alive(id) && groups_[id].kind == Group::Kind::kAnchor;
  }

  bool has_epilogue(GroupId id) const { return is_anchor(id) && has_tile(groups_[id]); }

  void take_movements(GroupId id) {
    if (!is_anchor(id) || !has_strides(groups_[id])) return;
    take(id, &GroupGraph::consumers);
    take(id, &GroupGraph::producers);
  }

  // Lets the last of several products whose results are added take the addition.
  void take_sum(GroupId id) {
    if (!has_epilogue(id)) return;
    for (GroupId consumer : groups_.consumers(id)) {
      const std::vector<NodeId>& nodes = groups_[consumer].nodes;
      const bool adds = nodes.size() == 1 && groups_.graph().node(nodes[0]).op == Op::kAdd &&
                        groups_.producers(consumer).size() > 1;
      if (adds && !rules_.leaves(groups_, id, consumer) && try_merge(id, consumer)) return;
    }
  }

  void grow_epilogue(GroupId id) {
    if (!has_epilogue(id)) return;
    bool changed = true;
    while (changed) {
      changed = false;
      for (GroupId consumer : groups_.consumers(id)) {
        changed =
            is_loop(consumer) && !rules_.leaves(groups_, id, consumer) && try_merge(id, consumer);
        if (changed) break;
      }
      for (GroupId producer : groups_.producers(id)) {
        if (changed) break;
        changed =
            is_loop(producer) && serves_epilogue(groups_, producer, id) && try_merge(id, producer);
      }
    }
  }

  void take_producers(GroupId node) {
    const GroupId id = groups_.group_of(node);
    if (is_loop(id)) take(id, &GroupGraph::producers);
  }

  // Merges a group with its neighbours, one after the other, until none fits.
  void take(GroupId id, Neighbours neighbours) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (GroupId neighbour : (groups_.*neighbours)(id)) {
        changed = is_loop(neighbour) && try_merge(id, neighbour);
        if (changed) break;
      }
    }
  }

  void merge_siblings() {
    const Graph& graph = groups_.graph();
    for (ValueId value = 0; value < static_cast<ValueId>(graph.values.size()); ++value) {
      if (element_count(graph.shape(value)) < kSharedElements) continue;
      for (const Phase phase :
           {Phase::kSetup, Phase::kPrologue, Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
        merge_readers(groups_.readers(value, phase));
      }
    }
  }

  void merge_readers(const std::vector<GroupId>& readers) {
    for (size_t i = 0; i < readers.size(); ++i) {
      for (size_t j = i + 1; j < readers.size(); ++j) {
        if (!is_kernel_loop(readers[i])) break;
        if (!is_kernel_loop(readers[j]) || leaves_its_readers(readers[i], readers[j])) continue;
        try_merge(readers[i], readers[j]);
      }
    }
  }

  // What the gradients of a layer's biases and scales have in common is their loop over the rows of
  // activations. Not in pipelines, whose cuts may go through a layer.
  void merge_sums_of_layers() {
    if (target_.is_gpu() || !part_of_node_.empty()) return;
    std::map<std::tuple<std::string, Shape, std::vector<int64_t>>, GroupId> sums;
    for (GroupId id = 0; id < static_cast<GroupId>(groups_.size()); ++id) {
      const Node* sum = gradient_sum(id);
      if (sum == nullptr || sum->sources.empty()) continue;
      const std::string layer = layer_of(sum->sources.front());
      if (layer == kNoLayer) continue;
      const auto [first, is_new] = sums.try_emplace(
          {layer, groups_.graph().shape(sum->operands[0]), sum->attributes.integers("axes")}, id);
      if (!is_new && !try_merge(first->second, id)) first->second = id;
    }
  }

  // A reduction of a loop in the backward phase that leaves nothing but such.
  const Node* gradient_sum(GroupId id) const {
    const Graph& graph = groups_.graph();
    if (!is_kernel_loop(id) || groups_[id].phase != Phase::kBackward) return nullptr;
    const Node* sum = nullptr;
    for (const ValueId output : groups_[id].outputs) {
      const Node* node = graph.producer(output);
      while (node != nullptr && (node->op == Op::kReshape || node->op == Op::kAccumulate)) {
        node = graph.producer(node->operands.back());
      }
      if (node == nullptr || node->op != Op::kReduceSum) return nullptr;
      sum = node;
    }
    return sum;
  }

  // Copies of a node keep its id (recompute/rerun_nodes.h, chunk_rows.h).
  void find_copies() {
    std::set<int64_t> seen;
    for (const Node& node : groups_.graph().nodes) {
      is_copy_.push_back(!seen.insert(node.id).second);
    }
  }

  // Whether the later one of two has copies and would run with the earlier one before something
  // that comes between them.
  bool leaves_its_readers(GroupId a, GroupId b) const {
    if (groups_[a].nodes.front() > groups_[b].nodes.front()) std::swap(a, b);
    const std::vector<NodeId>& later = groups_[b].nodes;
    const std::vector<GroupId> readers = groups_.consumers(a);
    return std::any_of(later.begin(), later.end(),
                       [&](NodeId node) { return is_copy_[static_cast<size_t>(node)]; }) &&
           std::any_of(readers.begin(), readers.end(), [&](GroupId reader) {
             return groups_[reader].nodes.back() < later.front();
           });
  }

  bool is_kernel_loop(GroupId id) const {
    return is_loop(id) && groups_[id].kind == Group::Kind::kLoop;
  }

  GroupGraph groups_;
  const EpilogueRules rules_;
  const std::vector<int64_t>& part_of_node_;
  const KernelTarget& target_;
  std::vector<double> costs_;
  std::vector<bool> is_copy_;  // per node
  std::set<std::tuple<GroupId, GroupId, size_t, size_t>> attempts_;
};

std::string_view name_of(Group::Kind kind) {
  switch (kind) {
    case Group::Kind::kLoop:
      return "loop";
    case Group::Kind::kAnchor:
      return "anchor";
    case Group::Kind::kView:
      return "view";
    case Group::Kind::kCollective:
      return "collective";
    case Group::Kind::kShard:
      return "shard";
  }
  return "";
}

}  // namespace

std::vector<Group> fuse(const Graph& graph, const std::vector<int64_t>& part_of_node,
                        const KernelTarget& target) {
  return Fuser(graph, part_of_node, target).run();
}

std::string to_text(const Graph& graph, const std::vector<Group>& groups) {
  std::string text;
  auto append_values = [&](const std::vector<ValueId>& values) {
    const char* separator = "";
    for (ValueId value : values) {
      text += separator + graph.value(value).name;
      separator = ", ";
    }
  };
  for (const Group& group : groups) {
    text += name_of(group.kind);
    text += ' ';
    text += sgtc::name_of(group.phase);
    text += ':';
    for (NodeId node : group.nodes) {
      text += ' ';
      text += sgtc::name_of(graph.node(node).op);
    }
    text += " (";
    append_values(group.inputs);
    text += ") -> (";
    append_values(group.outputs);
    text += ")\n";
  }
  return text;
}

}  // namespace sgtc
