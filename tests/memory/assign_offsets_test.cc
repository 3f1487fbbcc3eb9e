// Plans whose buffers share the arena, checked by verify_plan.
#include "memory/assign_offsets.h"

#include <algorithm>
#include <set>

#include "memory/plan_offsets.h"
#include "plan/live_buffers.h"
#include "schedule/mesh_plans.h"
#include "schedule/plan_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

BuiltPlan placed(const std::string& train, const std::string& evaluate, bool fused) {
  const Graph graph = parse_graph(train);
  const Graph forward = parse_graph(evaluate);
  PlanInput input;
  input.train = program_of(graph, fused);
  input.evaluate = program_of(forward, fused);
  WeightsBlob weights;
  BuiltPlan built = build_plan(input, weights);
  assign_offsets(built.plan, built.uses);
  return built;
}

// The forward pass of a chain of products.
std::string forward_chain(int layers) {
  std::string leaves = "graph \"mlp\" rows 4 micro_batches 1\nfeed %x: f32[4,8]\n";
  std::string nodes;
  std::string h = "x";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    leaves += "state parameter %w" + n + ": f32[8,8] = normal(0.0, 0.1, seed 1)\n";
    nodes += "%a" + n + " = matmul(%" + h + ", %w" + n + ")\n%h" + n + " = tanh(%a" + n + ")\n";
    h = "h" + n;
  }
  return leaves + nodes + "%loss = reduce_sum(%" + h + ") {axes=[0,1]}\noutput \"loss\" %loss\n";
}

int64_t arena(int layers, int micro_batches) {
  return placed(perceptron(layers, micro_batches), forward_chain(layers), true)
      .plan.positions[0]
      .arena_bytes;
}

}  // namespace

TEST_CASE("buffers of a GPU lie at multiples of 256 bytes") {
  const Graph graph = parse_graph(perceptron(2, 3));
  PlanInput input;
  input.train.kernels = kernelize(graph, true, 0, kHopperTarget);
  input.train.placement = place_on_one(input.train.kernels);
  WeightsBlob weights;
  BuiltPlan built = build_plan(input, weights);
  assign_offsets(built.plan, built.uses);
  for (const plan::Buffer& buffer : built.plan.positions[0].buffers) {
    INFO(buffer.name);
    CHECK(buffer.offset % 256 == 0);
    CHECK(buffer.stride % 256 == 0);
  }
}

TEST_CASE("placed plans are sound for every depth and number of micro-batches") {
  for (int layers = 1; layers <= 6; ++layers) {
    for (const int micro_batches : {1, 2, 5}) {
      for (const bool fused : {false, true}) {
        INFO(layers << " layers, " << micro_batches << " micro-batches, fused " << fused);
        const BuiltPlan built =
            placed(perceptron(layers, micro_batches), forward_chain(layers), fused);
        CHECK(fault_texts(built.plan) == "");
      }
    }
  }
}

TEST_CASE("the region is within five percent of what is live") {
  const BuiltPlan built = placed(perceptron(40, 2), forward_chain(40), true);
  std::vector<Interval> intervals;
  int64_t always = 0;
  for (size_t b = 0; b < built.uses[0].size(); ++b) {
    const plan::Buffer& buffer = built.plan.positions[0].buffers[b];
    const int64_t bytes = (buffer.count - 1) * buffer.stride + buffer.bytes;
    const BufferUse& use = built.uses[0][b];
    if (use.schedule.empty()) always += (bytes + 63) / 64 * 64;
    if (use.schedule == "train") intervals.push_back({bytes, use.first, use.last});
  }
  const auto region = static_cast<double>(built.plan.positions[0].arena_bytes - always);
  CHECK(region <= 1.05 * static_cast<double>(live_bound(intervals)));
}

TEST_CASE("an evaluation needs no memory beyond that of a step") {
  const BuiltPlan built = placed(perceptron(4, 1), forward_chain(4), true);
  const plan::Plan train = [] {
    const Graph graph = parse_graph(perceptron(4, 1));
    PlanInput input;
    input.train = program_of(graph, true);
    WeightsBlob weights;
    BuiltPlan alone = build_plan(input, weights);
    assign_offsets(alone.plan, alone.uses);
    return alone.plan;
  }();
  CHECK(built.plan.positions[0].arena_bytes == train.positions[0].arena_bytes);
}

TEST_CASE("more micro-batches need memory for feeds and results alone") {
  // 7 more feeds of 128 bytes, and 7 more losses of the evaluation, which fit into the region.
  CHECK(arena(6, 9) - arena(6, 2) == 7 * 128);
}

TEST_CASE("offsets are multiples of 64 and the peak is predicted") {
  const plan::Plan plan = placed(perceptron(3, 2), forward_chain(3), true).plan;
  for (const plan::Buffer& buffer : plan.positions[0].buffers) CHECK(buffer.offset % 64 == 0);
  CHECK(plan.prediction.peak_bytes == std::vector<int64_t>{plan.positions[0].arena_bytes});
  CHECK(plan.prediction.step_seconds > 0);
}

TEST_CASE("pipelines have a frame for each micro-batch between its passes") {
  for (const int64_t pp : {2, 4}) {
    for (const PipelineSchedule schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kGPipe}) {
      INFO(pp << " stages, schedule " << static_cast<int>(schedule));
      BuiltPlan built = build_on({8, {pp, 1, 1}, 6, schedule});
      assign_offsets(built.plan, built.uses);
      CHECK(fault_texts(built.plan) == "");
      std::set<int64_t> strides;
      const plan::Position& first = built.plan.positions[0];
      for (size_t b = 0; b < first.buffers.size(); ++b) {
        if (!built.uses[0][b].in_frame || first.buffers[b].scope != "slot") continue;
        strides.insert(first.buffers[b].stride);
      }
      CHECK(strides.size() == 1);
    }
  }
}

TEST_CASE("arenas of pipelines are within five percent of what is live") {
  for (const int64_t pp : {2, 3, 4}) {
    for (const int64_t micro_batches : {1, 4, 9}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kGPipe}) {
        BuiltPlan built = build_on({8, {pp, 1, 1}, micro_batches, schedule});
        assign_offsets(built.plan, built.uses);
        CHECK(fault_texts(built.plan) == "");
        for (const plan::Position& position : built.plan.positions) {
          INFO(pp << " stages, " << micro_batches << " micro-batches, " << position.stages.front());
          const int64_t live = find_live_peak(built.plan, position, "train").bytes;
          CHECK(static_cast<double>(position.arena_bytes) <= 1.05 * static_cast<double>(live));
        }
      }
    }
  }
}

// What is sent or received lies where others do, so the checker has to see each missing wait.
TEST_CASE("a pass that does not wait for a send is found where bytes are shared") {
  BuiltPlan built = build_on({4, {3, 1, 1}, 5});
  assign_offsets(built.plan, built.uses);
  REQUIRE(fault_texts(built.plan) == "");
  int planted = 0;
  std::vector<plan::Entry>& entries = built.plan.positions[1].schedules["train"];
  for (plan::Entry& entry : entries) {
    const std::vector<int64_t> waits = entry.waits;
    for (const int64_t wait : waits) {
      const std::string& awaited = entries[static_cast<size_t>(wait)].task;
      if (awaited.rfind("send_", 0) != 0 || entry.stream != 0) continue;
      std::erase(entry.waits, wait);
      planted += fault_texts(built.plan) == "" ? 0 : 1;
      entry.waits = waits;
    }
  }
  CHECK(planted > 0);
}
