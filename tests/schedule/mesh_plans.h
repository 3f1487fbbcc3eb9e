// Plans of a small model on meshes, for tests.
#pragma once

#include <string>

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_compositions.h"
#include "passes/fold_constants.h"
#include "passes/separate_loss.h"
#include "passes/simplify.h"
#include "passes/split_reductions.h"
#include "schedule/plan_of.h"
#include "shard/replicate.h"
#include "support/diagnostics.h"

namespace sgtc {

// Layers with a skip connection over all of them, an embedding that is tied to the head, and a
// loss that counts labels: everything that crosses stages.
inline std::string tied_model(int layers, int64_t micro_batches, int64_t replicas) {
  std::string text = "graph \"tied\" rows 4 micro_batches " + std::to_string(micro_batches) +
                     (replicas == 1 ? "" : " replicas " + std::to_string(replicas)) + "\n";
  text +=
      "feed %x: i64[4]\nfeed %labels: f32[4,16]\nfeed %weights: f32[4,1]\n"
      "state parameter %wte: f32[16,32] = normal(0.0, 0.1, seed 1)\n";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    text += "state parameter %w" + n + ": f32[32,32] = normal(0.0, 0.1, seed 2)\n";
    text += "state parameter %b" + n + ": f32[32] = zero\n";
  }
  text += "%h = gather(%wte, %x) {axis=0} \"embedding\"\n";
  std::string h = "h";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    const std::string name = " \"layer." + n + "\"\n";
    text += "%m" + n + " = matmul(%" + h + ", %w" + n + ")" + name;
    text += "%a" + n + " = add(%m" + n + ", %b" + n + ")" + name;
    text += "%t" + n + " = tanh(%a" + n + ")" + name;
    h = "t" + n;
  }
  text += "%skip = add(%" + h + ", %h) \"skip\"\n";
  text += "%logits = matmul(%skip, %wte) {transpose_b=1} \"head\"\n";
  text += "%d = sub(%logits, %labels) \"loss\"\n%s = mul(%d, %d) \"loss\"\n";
  text += "%ws = mul(%s, %weights) \"loss\"\n";
  text += "%total = reduce_sum(%ws) {axes=[0,1]} \"loss\"\n";
  text += "%count = reduce_sum(%weights) {axes=[0,1]} \"loss\"\n";
  return text + "%loss = div(%total, %count) \"loss\"\noutput \"loss\" %loss\n";
}

inline Graph training_graph(const std::string& text, Sharding sharding = Sharding::kNone) {
  Diagnostics diagnostics;
  const Graph forward = parse_graph(text);
  const Graph separated = separate_loss(forward, forward.micro_batches, forward.replicas,
                                        LossAverage::kExact, diagnostics);
  OptimizerOptions options;
  options.clip_norm = 1;
  Graph graph = add_optimizer(replicate(differentiate(separated, diagnostics), sharding), options);
  graph = simplify(fold_constants(expand_compositions(simplify(fold_constants(graph)))));
  return split_reductions(eliminate_dead_nodes(eliminate_common_subexpressions(graph)));
}

struct Settings {
  int layers = 4;
  Mesh mesh;
  int64_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  Sharding sharding = Sharding::kNone;
};

/// Without offsets.
inline BuiltPlan build_on(const std::string& text, const Settings& settings) {
  const Graph graph = training_graph(text, settings.sharding);
  PlanInput input;
  input.mesh = settings.mesh;
  input.schedule = settings.schedule;
  const bool cut = settings.mesh.pp > 1;
  const auto parts = cut ? fusion_parts(graph) : std::vector<int64_t>{};
  input.train.kernels.graph = &graph;
  input.train.kernels.groups = fuse(graph, parts);
  for (const Group& group : input.train.kernels.groups) {
    input.train.kernels.kernels.push_back(has_code(group) ? form_kernel(graph, group)
                                                          : KernelSpec{});
  }
  input.train.placement = partition(input.train.kernels, settings.mesh.pp, hardware_preset("cpu"));
  WeightsBlob weights;
  return build_plan(input, weights);
}

inline BuiltPlan build_on(const Settings& settings) {
  return build_on(tied_model(settings.layers, settings.micro_batches, settings.mesh.dp), settings);
}

inline plan::Plan plan_on(const std::string& text, const Settings& settings) {
  plan::Plan plan = build_on(text, settings).plan;
  place_apart(plan);
  return plan;
}

inline plan::Plan plan_on(const Settings& settings) {
  return plan_on(tied_model(settings.layers, settings.micro_batches, settings.mesh.dp), settings);
}

}  // namespace sgtc
