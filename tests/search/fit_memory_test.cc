// Steps of pipelines that exceed their memory: what the search finds, against every cut and every
// number of micro-batches in flight, each with what it then has to compute again.
#include "search/fit_memory.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <random>

#include "cost/group_time.h"
#include "memory/assign_offsets.h"
#include "partition/chain.h"
#include "schedule/mesh_plans.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// A machine on which small tensors take their time.
Hardware machine() {
  Hardware hardware = hardware_preset("cpu");
  hardware.rates[""] = {1e9, 1e9, 0};
  hardware.host = {1e9, 1e-6, 0};
  return hardware;
}

// Layers of random width, each a product up, an activation and a product down.
std::string random_layers(std::mt19937_64& random, int layers, int micro_batches) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::string leaves = "graph \"layers\" rows 64 micro_batches " + std::to_string(micro_batches) +
                       "\nfeed %h0: f32[64,32]\nfeed %weights: f32[64,1]\n";
  std::string nodes;
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    const std::string width = std::to_string(32 << below(4));
    leaves += "state parameter %u" + n + ": f32[32," + width + "] = zero\n";
    leaves += "state parameter %v" + n + ": f32[" + width + ",32] = zero\n";
    const std::string name = " \"layer." + n + "\"\n";
    nodes += "%a" + n + " = matmul(%h" + n + ", %u" + n + ")" + name;
    nodes += "%t" + n + " = tanh(%a" + n + ")" + name;
    nodes += "%b" + n + " = matmul(%t" + n + ", %v" + n + ")" + name;
    nodes += "%h" + std::to_string(l + 1) + " = add(%b" + n + ", %h" + n + ")" + name;
  }
  const std::string last = "%h" + std::to_string(layers);
  return leaves + nodes + "%square = mul(" + last + ", " + last + ") \"loss\"\n" +
         "%weighted = mul(%square, %weights) \"loss\"\n"
         "%total = reduce_sum(%weighted) {axes=[0,1]} \"loss\"\n"
         "%count = reduce_sum(%weights) {axes=[0,1]} \"loss\"\n"
         "%loss = div(%total, %count) \"loss\"\noutput \"loss\" %loss\n";
}

// Plans as the compiler does, and keeps all plans.
class Planner {
 public:
  StepPlanner function() {
    return [this](const Graph& graph, const StepShape& shape) { return plan(graph, shape); };
  }

  const plan::Plan& plan_of(size_t number) const { return plans_[number].built.plan; }

 private:
  struct Kept {
    Graph graph;
    PlanInput input;
    BuiltPlan built;
  };

  PlannedStep plan(const Graph& graph, const StepShape& shape) {
    Kept& kept = plans_.emplace_back();
    kept.graph = graph;
    PlanInput& input = kept.input;
    input.mesh.pp = shape.stages;
    input.in_flight = shape.in_flight;
    input.hardware = machine();
    KernelizedGraph& train = input.train.kernels;
    train.graph = &kept.graph;
    train.groups = fuse(kept.graph, fusion_parts(kept.graph));
    for (const Group& group : train.groups) {
      train.kernels.push_back(has_code(group) ? form_kernel(kept.graph, group) : KernelSpec{});
    }
    input.train.placement = shape.begins.empty()
                                ? partition(train, shape.stages, input.hardware)
                                : partition_at(train, shape.begins, input.hardware);
    WeightsBlob weights;
    kept.built = build_plan(input, weights);
    assign_offsets(kept.built.plan, kept.built.uses);
    return {&train, &input.train.placement, input.schedule, &kept.built.plan};
  }

  std::deque<Kept> plans_;
};

FittedStep fit(const Graph& graph, const StepShape& shape, const MemoryRequest& request) {
  Planner planner;
  return fit_in_shape(graph, shape, request, machine(), planner.function());
}

// Every way to choose `stages - 1` of the links from `first` on.
void for_all_cuts(size_t links, size_t first, int64_t stages, std::vector<size_t>& cuts,
                  const std::function<void(const std::vector<size_t>&)>& visit) {
  if (stages == 1) return visit(cuts);
  for (size_t cut = first; cut < links; ++cut) {
    cuts.push_back(cut);
    for_all_cuts(links, cut + 1, stages - 1, cuts, visit);
    cuts.pop_back();
  }
}

// The fastest of all shapes that fit, by simulation.
double brute_force(const Graph& graph, int64_t stages, const MemoryRequest& request) {
  Planner planner;
  const PlannedStep whole = planner.function()(graph, {stages});
  const Chain chain = find_chain(*whole.kernels, group_seconds(*whole.kernels, machine(), 1));
  double best = std::numeric_limits<double>::infinity();
  std::vector<size_t> cuts;
  for_all_cuts(chain.links.size(), 1, stages, cuts, [&](const std::vector<size_t>& links) {
    StepShape shape{stages};
    for (const size_t link : links) {
      shape.begins.push_back(begin_of(*whole.kernels, chain, link));
    }
    for (shape.in_flight = 1; shape.in_flight <= stages; ++shape.in_flight) {
      const FittedStep step = fit(graph, shape, request);
      if (step.peak_bytes <= request.budget) best = std::min(best, step.seconds);
    }
  });
  return best;
}

// Compares so many random graphs, of another kind each, with brute force.
void compare_with_brute_force(int graphs, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < graphs; ++round) {
    const int64_t stages = 2 + round % 2;
    const int layers = stages == 2 ? 3 + round % 3 : 3;
    const Graph graph = training_graph(random_layers(random, layers, 3 + round % 2));
    const FittedStep whole = fit(graph, {stages}, {1, Recompute::kNone});
    const FittedStep least = fit(graph, {stages}, {0, Recompute::kFull});
    const double share = 0.2 + 0.2 * (round % 4);
    MemoryRequest request;
    request.budget =
        least.peak_bytes +
        static_cast<int64_t>(share * static_cast<double>(whole.peak_bytes - least.peak_bytes));
    const double best = brute_force(graph, stages, request);
    Planner planner;
    const FittedStep found = fit_memory(graph, stages, request, machine(), planner.function());
    INFO("round " << round << ", " << stages << " stages, budget " << request.budget << " of "
                  << whole.peak_bytes << ", full " << least.peak_bytes << ", best " << best
                  << ", found " << found.seconds);
    const bool fits = best < std::numeric_limits<double>::infinity();
    CHECK((found.peak_bytes <= request.budget) == fits);
    CHECK(found.seconds <= 1.02 * best);
    CHECK(fault_texts(planner.plan_of(found.plan)).empty());
  }
}

// What refuse_memory says of a step of 1000 bytes that may have 500, and of ways of such peaks.
std::string refusal(const std::vector<std::pair<std::string, int64_t>>& ways) {
  FittedStep found;
  found.seconds = found.seconds_without = 1;
  found.peak_bytes = 1000;
  std::vector<OtherStep> others;
  for (const auto& [option, peak] : ways) {
    FittedStep step = found;
    step.peak_bytes = peak;
    others.push_back({option, 1, [step] { return step; }});
  }
  MemoryRequest request;
  request.budget = 500;
  try {
    refuse_memory(found, request, others);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("cut, micro-batches in flight and recomputation are as good as the best of all") {
  compare_with_brute_force(12, 11);
}

TEST_CASE("the same on 200 graphs", "[.][many]") { compare_with_brute_force(200, 12); }

TEST_CASE("plans that need a little more each time than the one before still come to fit") {
  std::mt19937_64 random(3);
  const Graph graph = training_graph(random_layers(random, 24, 2));
  const FittedStep whole = fit(graph, {1}, {1, Recompute::kNone});
  const FittedStep least = fit(graph, {1}, {0, Recompute::kFull});
  MemoryRequest request;
  request.budget = (whole.peak_bytes + least.peak_bytes) / 2;
  Planner planner;
  std::deque<plan::Plan> grown;
  const StepPlanner grows = [&](const Graph& step, const StepShape& shape) {
    PlannedStep planned = planner.function()(step, shape);
    grown.push_back(*planned.plan);
    grown.back().positions[0].arena_bytes +=
        static_cast<int64_t>(grown.size()) * request.budget / 200;
    planned.plan = &grown.back();
    return planned;
  };
  const FittedStep found = fit_in_shape(graph, {1}, request, machine(), grows);
  CHECK(found.peak_bytes <= request.budget);
}

TEST_CASE("the first way of a kind that fits is named, behind one that does not help") {
  const std::string text =
      refusal({{"--mesh 2x1", 995}, {"--mesh 4x1", 400}, {"--mesh 8x1", 300}, {"--dim B=2", 700}});
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\n  --mesh 4x1: 400 B per rank"));
  CHECK_THAT(text, !Catch::Matchers::ContainsSubstring("2x1"));
  CHECK_THAT(text, !Catch::Matchers::ContainsSubstring("8x1"));
  CHECK_THAT(text, !Catch::Matchers::ContainsSubstring("--dim"));
}

TEST_CASE("more of a kind is not tried where two in a row do not help") {
  const std::string text = refusal({{"--mesh 2x1", 995}, {"--mesh 4x1", 990}, {"--mesh 8x1", 300}});
  CHECK_THAT(text, !Catch::Matchers::ContainsSubstring("--mesh"));
}
