// Plans of graph texts, for tests.
#pragma once

#include <algorithm>
#include <string>

#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "plan/verify.h"
#include "schedule/build_plan.h"

namespace sgtc {

/// A group per node: collectives and views run no kernel.
inline std::vector<Group> one_group_per_node(const Graph& graph) {
  std::vector<Group> groups;
  const auto users = users_of(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    Group group;
    const OpKind kind = info(node.op).kind;
    const bool anchor = kind == OpKind::kContraction;
    group.kind = node.op == Op::kReshape       ? Group::Kind::kView
                 : kind == OpKind::kCollective ? Group::Kind::kCollective
                 : anchor                      ? Group::Kind::kAnchor
                                               : Group::Kind::kLoop;
    group.phase = node.phase;
    group.nodes = {static_cast<NodeId>(n)};
    if (anchor) group.anchor = static_cast<NodeId>(n);
    for (const ValueId operand : node.operands) {
      if (std::count(group.inputs.begin(), group.inputs.end(), operand) == 0) {
        group.inputs.push_back(operand);
      }
    }
    group.outputs = node.results;
    groups.push_back(std::move(group));
  }
  return groups;
}

inline KernelizedGraph kernelize(const Graph& graph, bool fused, int64_t first_checked = 0,
                                 const KernelTarget& target = kCpuTarget) {
  KernelizedGraph result;
  result.graph = &graph;
  result.target = target;
  result.groups = fused ? fuse(graph, {}, target) : one_group_per_node(graph);
  for (const Group& group : result.groups) {
    result.kernels.push_back(has_code(group) ? form_kernel(graph, group, first_checked, target)
                                             : KernelSpec{});
  }
  return result;
}

/// A program with all groups on one position.
inline PlacedProgram program_of(const Graph& graph, bool fused, int64_t first_checked = 0) {
  PlacedProgram program;
  program.kernels = kernelize(graph, fused, first_checked);
  program.placement = place_on_one(program.kernels);
  return program;
}

inline std::string fault_texts(const plan::Plan& plan) {
  std::string text;
  for (const PlanFault& fault : verify_plan(plan)) text += to_string(fault) + "\n";
  return text;
}

/// Gives every buffer bytes of its own, so that the checker sees the order alone.
inline void place_apart(plan::Plan& plan) {
  for (plan::Position& position : plan.positions) {
    for (plan::Buffer& buffer : position.buffers) {
      buffer.offset = position.arena_bytes;
      position.arena_bytes += (buffer.count - 1) * buffer.stride + (buffer.bytes + 63) / 64 * 64;
    }
  }
}

inline plan::Plan plan_of(const std::string& train, bool fused = false) {
  const Graph graph = parse_graph(train);
  PlanInput input;
  input.train = program_of(graph, fused);
  WeightsBlob weights;
  plan::Plan plan = build_plan(input, weights).plan;
  place_apart(plan);
  return plan;
}

inline plan::Plan plan_of(const std::string& train, const std::string& evaluate, bool fused) {
  const Graph graph = parse_graph(train);
  const Graph forward = parse_graph(evaluate);
  PlanInput input;
  input.train = program_of(graph, fused);
  input.evaluate = program_of(forward, fused, static_cast<int64_t>(checked_nodes(graph).size()));
  WeightsBlob weights;
  plan::Plan plan = build_plan(input, weights).plan;
  place_apart(plan);
  return plan;
}

/// The buffer called `name`, or null.
inline const plan::Buffer* find_buffer(const plan::Plan& plan, const std::string& name) {
  for (const plan::Buffer& buffer : plan.positions[0].buffers) {
    if (buffer.name == name) return &buffer;
  }
  return nullptr;
}

inline const plan::Task* find_task(const plan::Plan& plan, const std::string& name) {
  for (const plan::Task& task : plan.positions[0].tasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

/// "forward 0, backward 0, update 0".
inline std::string entries_text(const plan::Plan& plan, const std::string& schedule) {
  std::string text;
  for (const plan::Entry& entry : plan.positions[0].schedules.at(schedule)) {
    text += (text.empty() ? "" : ", ") + entry.task + " " + std::to_string(entry.micro_batch);
  }
  return text;
}

/// A chain of `layers` products with activations, trained by SGD over `micro_batches`.
inline std::string perceptron(int layers, int micro_batches) {
  const std::string m = std::to_string(micro_batches);
  std::string leaves = "graph \"mlp\" rows 4 micro_batches " + m + "\nfeed %x: f32[4,8]\n";
  std::string forward;
  std::string backward;
  std::string update;
  std::string tail = "output \"loss\" %total\n";
  leaves += "control %learning_rate: f32[]\nstate accumulator %loss: f32[1,1] = zero\n";
  std::string h = "x";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    leaves += "state parameter %w" + n + ": f32[8,8] = normal(0.0, 0.1, seed 1)\n";
    leaves += "state accumulator %g" + n + ": f32[8,8] = zero\n";
    forward += "%a" + n + " = matmul(%" + h + ", %w" + n + ")\n%h" + n + " = tanh(%a" + n + ")\n";
    h = "h" + n;
  }
  forward += "%part = reduce_sum(%" + h + ") {axes=[0,1]}\n%total = accumulate(%loss, %part)\n";
  std::string d = h;
  for (int l = layers - 1; l >= 0; --l) {
    const std::string n = std::to_string(l);
    const std::string input = l == 0 ? "x" : "h" + std::to_string(l - 1);
    backward += "%s" + n + " = mul(%" + d + ", %h" + n + ") @backward\n";
    backward += "%dw" + n + " = matmul(%" + input + ", %s" + n + ") {transpose_a=1} @backward\n";
    backward += "%acc" + n + " = accumulate(%g" + n + ", %dw" + n + ") @backward\n";
    if (l > 0) {
      backward += "%d" + n + " = matmul(%s" + n + ", %w" + n + ") {transpose_b=1} @backward\n";
      d = "d" + n;
    }
    update += "%u" + n + " = mul(%acc" + n + ", %learning_rate) @update\n";
    update += "%new" + n + " = sub(%w" + n + ", %u" + n + ") @update\n";
    tail += "update %w" + n + " = %new" + n + "\n";
  }
  return leaves + forward + backward + update + tail;
}

}  // namespace sgtc
