#include "partition/place_evaluation.h"

#include <algorithm>
#include <map>
#include <string>

namespace sgtc {
namespace {

// The last stage with a forward group of each source.
std::map<std::string, int64_t> stages_of_sources(const KernelizedGraph& train,
                                                 const Placement& placement) {
  std::map<std::string, int64_t> stages;
  for (size_t g = 0; g < train.groups.size(); ++g) {
    const Group& group = train.groups[g];
    if (group.phase != Phase::kForward || placement.groups[g].size() != 1) continue;
    for (const NodeId node : group.nodes) {
      for (const std::string& source : train.graph->node(node).sources) {
        int64_t& stage = stages.try_emplace(source, 0).first->second;
        stage = std::max(stage, placement.groups[g].front());
      }
    }
  }
  return stages;
}

// Where training holds the states of another graph of the same model.
std::vector<Positions> holders_in(const Graph& graph, const KernelizedGraph& train,
                                  const Placement& placement) {
  std::vector<Positions> holders(graph.values.size());
  for (const ValueId state : graph.states) {
    const ValueId known = train.graph->find(graph.value(state).name);
    holders[static_cast<size_t>(state)] =
        known == kNone ? Positions{0} : placement.states[static_cast<size_t>(known)];
  }
  return holders;
}

}  // namespace

std::vector<int64_t> evaluation_stages(const Graph& evaluation, const KernelizedGraph& train,
                                       const Placement& placement) {
  const std::map<std::string, int64_t> known = stages_of_sources(train, placement);
  const std::vector<Positions> holders = holders_in(evaluation, train, placement);
  std::vector<int64_t> stages;
  for (const Node& node : evaluation.nodes) {
    int64_t stage = -1;
    bool floats = info(node.op).kind != OpKind::kRandom;
    for (const ValueId operand : node.operands) {
      const Value& value = evaluation.value(operand);
      int64_t least = -1;
      if (value.kind == ValueKind::kState) least = holders[static_cast<size_t>(operand)].front();
      if (value.kind == ValueKind::kResult) least = stages[static_cast<size_t>(value.producer)];
      stage = std::max(stage, least);
      floats = floats && least == -1;
    }
    for (const std::string& source : node.sources) {
      const auto found = known.find(source);
      if (!floats && found != known.end()) stage = std::max(stage, found->second);
    }
    stages.push_back(floats ? -1 : std::max<int64_t>(stage, 0));
  }
  return stages;
}

Placement place_evaluation(const KernelizedGraph& evaluation, const std::vector<int64_t>& stages,
                           const KernelizedGraph& train, const Placement& placement) {
  if (placement.stages == 1) return place_on_one(evaluation);
  Placement result;
  result.stages = placement.stages;
  result.states = holders_in(*evaluation.graph, train, placement);
  result.groups.resize(evaluation.groups.size());
  std::vector<Positions> readers(evaluation.graph->values.size());
  for (size_t g = evaluation.groups.size(); g-- > 0;) {
    const Group& group = evaluation.groups[g];
    int64_t stage = -1;
    for (const NodeId node : group.nodes) {
      stage = std::max(stage, stages[static_cast<size_t>(node)]);
    }
    Positions& positions = result.groups[g];
    const bool follows = stage < 0 || group.kind == Group::Kind::kView;
    for (const ValueId output : group.outputs) {
      if (follows) unite(positions, readers[static_cast<size_t>(output)]);
    }
    if (stage >= 0 && positions.empty()) positions = {stage};
    if (positions.empty()) positions = {placement.stages - 1};
    for (const ValueId input : group.inputs) unite(readers[static_cast<size_t>(input)], positions);
  }
  return result;
}

}  // namespace sgtc
