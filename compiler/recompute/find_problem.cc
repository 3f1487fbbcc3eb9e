#include "recompute/find_problem.h"

#include <algorithm>
#include <set>

#include "cost/cost.h"

namespace sgtc {
namespace {

struct Reads {
  int64_t made = -1;
  int64_t last_forward = -1;
  int64_t first_backward = -1;
  int64_t last_backward = -1;
  int64_t last = -1;    // of any phase
  bool pinned = false;  // kept anyway
  bool stored = false;
  bool in_place = false;  // it overwrites a state, which is there anyway
};

class Finder {
 public:
  Finder(const KernelizedGraph& program, const Placement& placement, int64_t position,
         const RerunCosts& costs)
      : program_(program),
        graph_(*program.graph),
        placement_(placement),
        position_(position),
        costs_(costs),
        shown_(graph_.values.size()),
        reads_(graph_.values.size()),
        group_of_(graph_.nodes.size(), kNone) {
    for (size_t g = 0; g < program.groups.size(); ++g) {
      for (const NodeId node : program.groups[g].nodes) {
        group_of_[static_cast<size_t>(node)] = static_cast<int32_t>(g);
      }
    }
  }

  PositionProblem run(int64_t slots) {
    find_shown();
    find_times();
    find_reads();
    add_nodes();
    add_other_bytes();
    result_.problem.slots = slots;
    return std::move(result_);
  }

 private:
  const Group& group(size_t g) const { return program_.groups[g]; }
  Reads& reads(ValueId value) { return reads_[static_cast<size_t>(shown(value))]; }
  ValueId shown(ValueId value) const { return shown_[static_cast<size_t>(value)]; }
  int64_t bytes(ValueId value) const { return bytes_of(graph_.type(value)); }

  // What reshapes show. Sums over replicas replace what they sum.
  void find_shown() {
    for (ValueId value = 0; value < static_cast<ValueId>(shown_.size()); ++value) {
      shown_[static_cast<size_t>(value)] = value;
    }
    for (const Node& node : graph_.nodes) {
      const bool is_sum = node.op == Op::kAllReduce && graph_.producer(node.operands[0]) != nullptr;
      if (node.op != Op::kReshape && !is_sum) continue;
      shown_[static_cast<size_t>(node.results[0])] = shown(node.operands[0]);
    }
  }

  void find_times() {
    times_.assign(program_.groups.size(), -1);
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (!placement_.runs(g, position_)) continue;
      times_[g] = time_count_++;
      if (group(g).phase == Phase::kForward || group(g).phase == Phase::kBackward) {
        result_.problem.backward_end = times_[g];
      }
    }
  }

  void find_reads() {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      for (const ValueId input : group(g).inputs) read(g, input);
      if (times_[g] < 0) continue;
      for (const ValueId output : group(g).outputs) {
        Reads& made = reads(output);
        made.stored = true;
        if (made.made < 0) made.made = times_[g];
        made.last = std::max(made.last, times_[g]);
      }
    }
    for (const Output& output : graph_.outputs) pin(output.value);
    for (const Update& update : graph_.updates) {
      pin(update.value);
      reads(update.value).in_place = true;
    }
    for (const Node& node : graph_.nodes) {
      if (accumulates(node.op)) reads(node.results[0]).in_place = true;
    }
  }

  void pin(ValueId value) {
    reads(value).pinned = true;
    reads(value).last = time_count_ - 1;
  }

  void read(size_t g, ValueId input) {
    Reads& read = reads(input);
    const Phase phase = group(g).phase;
    if (times_[g] < 0 || phase == Phase::kUpdate) read.pinned = true;
    if (times_[g] < 0 || group(g).kind == Group::Kind::kView) return;
    read.last = std::max(read.last, times_[g]);
    if (phase == Phase::kForward) read.last_forward = std::max(read.last_forward, times_[g]);
    if (phase != Phase::kBackward) return;
    if (read.first_backward < 0) read.first_backward = times_[g];
    read.last_backward = std::max(read.last_backward, times_[g]);
  }

  bool is_in_problem(const Node& node, size_t g) const {
    return node.phase == Phase::kForward && node.op != Op::kReshape &&
           placement_.groups[g] == Positions{position_};
  }

  static bool may_rerun(const Node& node) {
    const OpKind kind = info(node.op).kind;
    return kind != OpKind::kCollective && kind != OpKind::kMicroBatch && kind != OpKind::kIndexing;
  }

  void add_nodes() {
    number_.assign(graph_.values.size(), kNone);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const auto g = static_cast<size_t>(group_of_[static_cast<size_t>(id)]);
      if (is_in_problem(graph_.node(id), g)) add_node(id, g);
    }
    share_seconds();
  }

  void add_node(NodeId id, size_t g) {
    const Node& node = graph_.node(id);
    RecomputeProblem::Node added;
    added.may_rerun = may_rerun(node);
    // It completes a tensor that earlier nodes have begun, in place.
    const bool completes = node.op == Op::kPlace && node.operands.size() > 1;
    const bool is_kept = std::any_of(node.results.begin(), node.results.end(), [&](ValueId r) {
      return reads_[static_cast<size_t>(r)].pinned;
    });
    if (completes || is_kept) added.may_rerun = false;
    std::set<int32_t> seen;
    for (const ValueId operand : node.operands) {
      const int32_t value = number_[static_cast<size_t>(shown(operand))];
      if (value == kNone || !seen.insert(value).second) continue;
      const NodeId maker = graph_.value(shown(operand)).producer;
      const bool in_registers = group_of_[static_cast<size_t>(maker)] == static_cast<int32_t>(g);
      const double seconds = static_cast<double>(bytes(operand)) / costs_.bytes_per_second;
      added.operands.push_back({value, in_registers ? seconds : 0});
    }
    for (const ValueId result : node.results) {
      const Reads& read = reads_[static_cast<size_t>(result)];
      if (read.pinned) continue;
      const auto number = static_cast<int32_t>(result_.problem.values.size());
      number_[static_cast<size_t>(result)] = number;
      added.results.push_back(number);
      result_.problem.values.push_back({bytes(result),
                                        static_cast<int32_t>(result_.problem.nodes.size()),
                                        times_[g], std::max(times_[g], read.last_forward),
                                        read.first_backward, read.last_backward, read.stored});
    }
    result_.problem.nodes.push_back(std::move(added));
    result_.nodes.push_back(id);
  }

  // The time of a group is shared by what its nodes compute, read from memory and write to it.
  void share_seconds() {
    std::vector<double> weights;
    std::vector<double> totals(program_.groups.size(), 0);
    for (const NodeId id : result_.nodes) {
      const auto g = static_cast<size_t>(group_of_[static_cast<size_t>(id)]);
      weights.push_back(weight_of(id, group(g)));
      totals[g] += weights.back();
    }
    for (size_t n = 0; n < weights.size(); ++n) {
      const auto g = static_cast<size_t>(group_of_[static_cast<size_t>(result_.nodes[n])]);
      if (totals[g] > 0) {
        result_.problem.nodes[n].seconds = costs_.group_seconds[g] * weights[n] / totals[g];
      }
    }
  }

  double weight_of(NodeId id, const Group& group) const {
    const Node& node = graph_.node(id);
    double traffic = 0;
    for (const ValueId operand : node.operands) {
      const auto is_input = [&](ValueId input) { return shown(input) == shown(operand); };
      if (std::none_of(group.inputs.begin(), group.inputs.end(), is_input)) continue;
      traffic += static_cast<double>(bytes(operand)) / readers(group, operand);
    }
    for (const ValueId result : node.results) {
      const auto is_output = [&](ValueId output) { return shown(output) == result; };
      if (std::any_of(group.outputs.begin(), group.outputs.end(), is_output)) {
        traffic += static_cast<double>(bytes(result));
      }
    }
    const double flops = static_cast<double>(flops_of(graph_, node)) / costs_.flops_per_second;
    const double memory = traffic / costs_.bytes_per_second;
    return group.anchor == id ? std::max(flops, memory) : flops + memory;
  }

  // Nodes of the group that read the value.
  double readers(const Group& group, ValueId value) const {
    double count = 0;
    for (const NodeId id : group.nodes) {
      const std::vector<ValueId>& operands = graph_.node(id).operands;
      count += std::any_of(operands.begin(), operands.end(),
                           [&](ValueId operand) { return shown(operand) == shown(value); })
                   ? 1
                   : 0;
    }
    return std::max(count, 1.0);
  }

  void add_other_bytes() {
    std::vector<int64_t> change(static_cast<size_t>(time_count_) + 1, 0);
    for (ValueId value = 0; value < static_cast<ValueId>(graph_.values.size()); ++value) {
      const Reads& read = reads_[static_cast<size_t>(value)];
      const bool is_leaf = graph_.value(value).kind != ValueKind::kResult;
      if (is_leaf || shown(value) != value || number_[static_cast<size_t>(value)] != kNone)
        continue;
      if (read.last < 0 || read.in_place) continue;
      change[static_cast<size_t>(std::max<int64_t>(read.made, 0))] += bytes(value);
      change[static_cast<size_t>(read.last) + 1] -= bytes(value);
    }
    int64_t live = 0;
    for (int64_t t = 0; t < time_count_; ++t) {
      live += change[static_cast<size_t>(t)];
      result_.problem.other_bytes.push_back(live);
    }
  }

  const KernelizedGraph& program_;
  const Graph& graph_;
  const Placement& placement_;
  const int64_t position_;
  const RerunCosts& costs_;
  std::vector<ValueId> shown_;  // what each value has the bytes of
  std::vector<Reads> reads_;    // by value that is shown
  std::vector<int32_t> group_of_;
  std::vector<int64_t> times_;   // of each group; -1: it does not run here
  std::vector<int32_t> number_;  // of each value in the problem
  int64_t time_count_ = 0;
  PositionProblem result_;
};

}  // namespace

PositionProblem find_problem(const KernelizedGraph& program, const Placement& placement,
                             int64_t position, int64_t slots, const RerunCosts& costs) {
  return Finder(program, placement, position, costs).run(slots);
}

}  // namespace sgtc
