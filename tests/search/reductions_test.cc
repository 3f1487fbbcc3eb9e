// Reductions of gradients over replicas on GPUs: what hides them, and what leaves them room.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "schedule/mesh_plans.h"
#include "search/beside_reductions.h"
#include "search/defer_gradients.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

constexpr double kNoTime = 1e18;  // bytes per second
constexpr double kForever = 1e3;

Hardware with_link(double bytes_per_second) {
  Hardware hardware = hardware_preset("h200");
  hardware.host = {bytes_per_second, 0, 0};
  return hardware;
}

// With an embedding that is larger than the other weights.
Graph replicated(int64_t replicas) {
  std::string text = tied_model(3, 1, replicas);
  for (const auto& [small, large] :
       {std::pair<std::string, std::string>{"f32[16,32]", "f32[256,32]"},
        {"f32[4,16]", "f32[4,256]"}}) {
    text.replace(text.find(small), small.size(), large);
  }
  return training_graph(text);
}

// "backward matmul %y, ": phase and nodes.
std::string text_of(const Graph& graph, const Group& group) {
  std::string text = std::string(name_of(group.phase)) + " ";
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    text += std::string(name_of(node.op)) + " %" + std::to_string(node.results.front()) + ", ";
  }
  return text;
}

std::vector<std::string> order_of(const KernelizedGraph& program) {
  std::vector<std::string> order;
  for (const Group& group : program.groups) order.push_back(text_of(*program.graph, group));
  return order;
}

std::vector<std::string> deferred(const Graph& graph, const Hardware& hardware, int64_t replicas) {
  KernelizedGraph program = kernelize(graph, true, 0, kHopperTarget);
  defer_gradients(program, hardware, replicas);
  std::set<ValueId> made;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const Group& group = program.groups[g];
    for (const ValueId input : group.inputs) {
      if (graph.value(input).producer != kNone) CHECK(made.count(input) == 1);
    }
    made.insert(group.outputs.begin(), group.outputs.end());
    // Kernels move with their groups.
    CHECK(program.kernels[g].symbol ==
          (has_code(group) ? form_kernel(graph, group, 0, kHopperTarget).symbol : ""));
  }
  return order_of(program);
}

// The last groups of the backward phase.
std::string end_of_backward(const std::vector<std::string>& order, size_t count) {
  std::string end;
  for (size_t i = order.size(); i-- > 0 && count > 0;) {
    if (order[i].find("backward ") != 0) continue;
    end += order[i] + "\n";
    --count;
  }
  return end;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("gradients that only the update reads wait behind the embedding's") {
  const Graph graph = replicated(2);
  const std::vector<std::string> before = order_of(kernelize(graph, true, 0, kHopperTarget));
  CHECK(contains(end_of_backward(before, 1), "scatter_add"));
  const std::vector<std::string> after = deferred(graph, with_link(kForever), 2);
  INFO(end_of_backward(after, 3));
  CHECK_FALSE(contains(end_of_backward(after, 3), "scatter_add"));
  CHECK(contains(end_of_backward(after, 3), "matmul"));
  CHECK(std::multiset<std::string>(before.begin(), before.end()) ==
        std::multiset<std::string>(after.begin(), after.end()));
}

TEST_CASE("nothing waits where reductions take no time, or there are none") {
  const Graph graph = replicated(2);
  const std::vector<std::string> before = order_of(kernelize(graph, true, 0, kHopperTarget));
  CHECK(deferred(graph, with_link(kNoTime), 2) == before);
  const Graph alone = replicated(1);
  CHECK(deferred(alone, with_link(kForever), 1) ==
        order_of(kernelize(alone, true, 0, kHopperTarget)));
}

TEST_CASE("kernels of the backward phase run beside reductions, if these last") {
  const Graph graph = replicated(2);
  PlanInput input;
  input.mesh.dp = 2;
  input.communication_blocks = 8;
  input.bucket_bytes = 1;
  input.train.kernels = kernelize(graph, true, 0, kHopperTarget);
  input.train.placement = place_on_one(input.train.kernels);
  WeightsBlob weights;
  const BuiltPlan built = build_plan(input, weights);
  const KernelizedGraph& program = input.train.kernels;
  const std::vector<bool> beside = groups_beside_reductions(built, program, with_link(kForever));
  REQUIRE(beside.size() == program.groups.size());
  size_t found = 0;
  bool begun = false;
  for (size_t g = 0; g < beside.size(); ++g) {
    const Group& group = program.groups[g];
    if (beside[g]) CHECK(group.phase == Phase::kBackward);
    if (begun && group.phase == Phase::kBackward && has_code(group)) CHECK(beside[g]);
    begun = begun || beside[g];
    found += beside[g];
  }
  CHECK(found > 0);
}
