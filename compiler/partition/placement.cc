#include "partition/placement.h"

#include <algorithm>
#include <map>

#include "cost/cost.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class UpdatePlacer {
 public:
  UpdatePlacer(const KernelizedGraph& program, Placement& placement)
      : program_(program),
        graph_(*program.graph),
        placement_(placement),
        maker_(makers_of(program)),
        readers_(graph_.values.size()) {
    for (size_t g = 0; g < program.groups.size(); ++g) {
      for (const ValueId input : program.groups[g].inputs) {
        readers_[static_cast<size_t>(input)].push_back(g);
      }
    }
    placement_.states.resize(graph_.values.size());
  }

  void run() {
    hold_states_of({Phase::kForward, Phase::kBackward});
    place_before_passes();
    hold_states_of({Phase::kSetup, Phase::kPrologue});
    place_by_needs();
    place_the_rest();
    hold_states_of({Phase::kUpdate});
    hold_updated_states();
    hold_unused_states();
  }

 private:
  const Group& group(size_t g) const { return program_.groups[g]; }
  Positions& positions(size_t g) { return placement_.groups[g]; }
  size_t group_count() const { return program_.groups.size(); }

  // Reading and accumulating groups hold a state where they run.
  void hold_states_of(std::initializer_list<Phase> phases) {
    for (size_t g = 0; g < group_count(); ++g) {
      if (std::find(phases.begin(), phases.end(), group(g).phase) == phases.end()) continue;
      for (const ValueId input : group(g).inputs) {
        if (graph_.value(input).kind != ValueKind::kState) continue;
        unite(placement_.states[static_cast<size_t>(input)], positions(g));
      }
    }
  }

  // Where groups that read `value` run, as far as they are placed.
  Positions readers(ValueId value) const {
    Positions result;
    for (const size_t g : readers_[static_cast<size_t>(value)]) {
      unite(result, placement_.groups[g]);
    }
    return result;
  }

  void place_before_passes() {
    for (size_t g = group_count(); g-- > 0;) {
      if (group(g).phase != Phase::kSetup && group(g).phase != Phase::kPrologue) continue;
      for (const ValueId output : group(g).outputs) unite(positions(g), readers(output));
      if (positions(g).empty()) positions(g) = {placement_.stages - 1};
    }
  }

  // Unlike other collectives of the update, one whose operand is computed where the result is held.
  bool gathers_shards(size_t g) const {
    return graph_.node(group(g).nodes.front()).op == Op::kGatherShards;
  }

  bool is_update(size_t g) const { return group(g).phase == Phase::kUpdate; }

  bool is_scalar(ValueId value) const { return element_count(graph_.shape(value)) == 1; }

  bool is_scalar(const Group& group) const {
    const auto scalar = [&](ValueId value) { return is_scalar(value); };
    return group.kind != Group::Kind::kCollective &&
           std::all_of(group.inputs.begin(), group.inputs.end(), scalar) &&
           std::all_of(group.outputs.begin(), group.outputs.end(), scalar);
  }

  Positions everywhere() const {
    Positions all;
    for (int64_t p = 0; p < placement_.stages; ++p) all.push_back(p);
    return all;
  }

  // Where the value is needed by outputs and states.
  Positions results_need(ValueId value) const {
    Positions need;
    for (const Output& output : graph_.outputs) {
      if (output.value == value) need = everywhere();
    }
    for (const Update& update : graph_.updates) {
      if (update.value == value) unite(need, placement_.states[static_cast<size_t>(update.state)]);
    }
    return need;
  }

  void place_by_needs() {
    for (size_t g = group_count(); g-- > 0;) {
      if (!is_update(g)) continue;
      if (group(g).kind == Group::Kind::kCollective && !gathers_shards(g)) continue;
      const bool scalar = is_scalar(group(g));
      for (const ValueId output : group(g).outputs) {
        if (!scalar && is_scalar(output)) continue;
        unite(positions(g), results_need(output));
        unite(positions(g), readers(output));
      }
    }
  }

  // Where an operand can be had, before any transfer.
  Positions location(ValueId value) const {
    const int32_t maker = maker_[static_cast<size_t>(value)];
    if (maker != kNone) return placement_.groups[static_cast<size_t>(maker)];
    return placement_.states[static_cast<size_t>(value)];
  }

  // Collectives, and groups that only reduce.
  void place_the_rest() {
    for (size_t g = 0; g < group_count(); ++g) {
      if (!is_update(g) || !positions(g).empty()) continue;
      if (group(g).kind == Group::Kind::kCollective) {
        positions(g) = location(group(g).inputs[0]);
      } else {
        positions(g) = home(group(g));
      }
      if (positions(g).empty()) positions(g) = {0};
    }
  }

  Positions home(const Group& group) const {
    Positions best;
    int64_t most = -1;
    for (const ValueId input : group.inputs) {
      const Positions where = location(input);
      const int64_t bytes = bytes_of(graph_.type(input));
      if (where.empty() || bytes <= most) continue;
      best = {where.front()};
      most = bytes;
    }
    return best;
  }

  void hold_updated_states() {
    for (const Update& update : graph_.updates) {
      unite(placement_.states[static_cast<size_t>(update.state)], location(update.value));
    }
  }

  void hold_unused_states() {
    for (const ValueId state : graph_.states) {
      Positions& holders = placement_.states[static_cast<size_t>(state)];
      if (holders.empty()) holders = {0};
    }
  }

  const KernelizedGraph& program_;
  const Graph& graph_;
  Placement& placement_;
  std::vector<int32_t> maker_;                // group that computes each value, or kNone
  std::vector<std::vector<size_t>> readers_;  // groups that read each value
};

}  // namespace

bool contains(const Positions& list, int64_t position) {
  return std::binary_search(list.begin(), list.end(), position);
}

void unite(Positions& list, const Positions& more) {
  Positions result;
  std::set_union(list.begin(), list.end(), more.begin(), more.end(), std::back_inserter(result));
  list = std::move(result);
}

bool Placement::runs(size_t group, int64_t position) const {
  return contains(groups[group], position);
}

bool Placement::holds(ValueId state, int64_t position) const {
  return contains(states[static_cast<size_t>(state)], position);
}

Placement place_on_one(const KernelizedGraph& program) {
  Placement placement;
  placement.groups.assign(program.groups.size(), {0});
  placement.states.resize(program.graph->values.size());
  for (const ValueId state : program.graph->states) {
    placement.states[static_cast<size_t>(state)] = {0};
  }
  return placement;
}

void place_update(const KernelizedGraph& program, Placement& placement) {
  UpdatePlacer(program, placement).run();
}

}  // namespace sgtc
