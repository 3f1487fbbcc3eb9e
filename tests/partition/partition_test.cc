// Cuts against brute force, and where everything else goes.
#include "partition/partition.h"

#include <algorithm>
#include <functional>
#include <random>

#include "cost/group_time.h"
#include "partition/chain.h"
#include "partition/place_evaluation.h"
#include "schedule/plan_of.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

const Hardware kCpu = hardware_preset("cpu");

// A forward chain of products of random widths with random skip connections.
std::string random_chain(std::mt19937& random, int layers) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string leaves = "graph \"chain\" rows 4 micro_batches 1\nfeed %h0: f32[4,16]\n";
  std::string nodes;
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    const std::string width = std::to_string(16 << below(4));
    leaves += "state parameter %u" + n + ": f32[16," + width + "] = zero\n";
    leaves += "state parameter %v" + n + ": f32[" + width + ",16] = zero\n";
    nodes += "%a" + n + " = matmul(%h" + n + ", %u" + n + ")\n";
    nodes += "%b" + n + " = matmul(%a" + n + ", %v" + n + ")\n";
    const std::string from = std::to_string(below(l + 1));
    nodes += "%h" + std::to_string(l + 1) + " = add(%b" + n + ", %h" + from + ")\n";
  }
  const std::string last = "%h" + std::to_string(layers);
  return leaves + nodes + "%loss = reduce_sum(" + last + ") {axes=[0,1]}\noutput \"loss\" %loss\n";
}

// The least slowest stage over all ways to cut the chain, tried one by one.
double brute_force(const Chain& chain, size_t stages, const Link& link) {
  const size_t links = chain.links.size();
  const auto crossing = [&](size_t cut) {
    if (chain.bytes[cut] == 0) return 0.0;
    return link.seconds_per_message + static_cast<double>(chain.bytes[cut]) / link.bytes_per_second;
  };
  std::function<double(size_t, size_t)> best = [&](size_t begin, size_t left) {
    double result = 1e30;
    const size_t first = left == 1 ? links : begin + 1;
    for (size_t end = first; end <= links; ++end) {
      double seconds = crossing(begin) + crossing(end);
      for (size_t i = begin; i < end; ++i) seconds += chain.seconds[i];
      if (left > 1) seconds = end < links ? std::max(seconds, best(end, left - 1)) : 1e30;
      result = std::min(result, seconds);
    }
    return result;
  };
  return best(0, stages);
}

std::vector<Positions> positions_of(const KernelizedGraph& program, const Placement& placement,
                                    const std::string& value) {
  std::vector<Positions> found;
  const NodeId producer = program.graph->value(program.graph->find(value)).producer;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const auto& nodes = program.groups[g].nodes;
    if (std::count(nodes.begin(), nodes.end(), producer) > 0) found.push_back(placement.groups[g]);
  }
  return found;
}

}  // namespace

TEST_CASE("cuts are as good as the best of all") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const Graph graph = parse_graph(random_chain(random, 2 + round % 4));
    const KernelizedGraph program = kernelize(graph, round % 2 == 0);
    const Chain chain = find_chain(program, group_seconds(program, kCpu, 1));
    Hardware hardware = kCpu;
    hardware.host.bytes_per_second = round % 3 == 0 ? 1e8 : 1e11;
    for (int64_t stages = 2;
         stages <= std::min<int64_t>(4, static_cast<int64_t>(chain.links.size())); ++stages) {
      INFO("round " << round << ", " << stages << " stages");
      const Placement placement = partition(program, stages, hardware);
      const double best = brute_force(chain, static_cast<size_t>(stages), hardware.host);
      const double found = slowest_stage(program, placement, hardware);
      CHECK(found >= best * 0.999999);
      CHECK(found <= best * 1.01);
    }
  }
}

TEST_CASE("cuts are those of the hardware") {
  std::string text = "graph \"halves\" rows 64 micro_batches 1\nfeed %h0: f32[64,256]\n";
  std::string nodes;
  for (int l = 0; l < 4; ++l) {
    const std::string n = std::to_string(l);
    text += "state parameter %w" + n + ": f32[256,256] = zero\n";
    nodes += "%h" + std::to_string(l + 1) + " = matmul(%h" + n + ", %w" + n + ")\n";
  }
  for (int l = 4; l < 8; ++l) {
    nodes += "%h" + std::to_string(l + 1) + " = tanh(%h" + std::to_string(l) + ")\n";
  }
  nodes += "%loss = reduce_sum(%h8) {axes=[0,1]}\noutput \"loss\" %loss\n";
  const Graph graph = parse_graph(text + nodes);
  const KernelizedGraph program = kernelize(graph, false);
  Hardware fast_products = kCpu;
  fast_products.rates["matmul"] = {1e15, 1e15, 0};
  const auto second_stage_begins = [&](const Hardware& hardware) {
    const Placement placement = partition(program, 2, hardware);
    const auto first = std::find(placement.groups.begin(), placement.groups.end(), Positions{1});
    return first - placement.groups.begin();
  };
  CHECK(second_stage_begins(kCpu) == 2);
  CHECK(second_stage_begins(fast_products) == 6);
}

TEST_CASE("stages ascend along the chain and none is empty") {
  std::mt19937 random(3);
  const Graph graph = parse_graph(random_chain(random, 8));
  const KernelizedGraph program = kernelize(graph, true);
  const Placement placement = partition(program, 5, kCpu);
  const Chain chain = find_chain(program, group_seconds(program, kCpu, 1));
  int64_t stage = 0;
  for (const size_t link : chain.links) {
    REQUIRE(placement.groups[link].size() == 1);
    CHECK((placement.groups[link][0] == stage || placement.groups[link][0] == stage + 1));
    stage = placement.groups[link][0];
  }
  CHECK(stage == 4);
}

TEST_CASE("what needs no parameter is computed where it is read") {
  const Graph graph = parse_graph(R"(graph "masks" rows 4 micro_batches 1
feed %x: f32[4,16]
feed %mask: f32[4,16]
state parameter %u: f32[16,16] = zero
state parameter %v: f32[16,16] = zero
%bias = exp(%mask)
%a = matmul(%x, %u)
%b = add(%a, %bias)
%c = matmul(%b, %v)
%d = add(%c, %bias)
%loss = reduce_sum(%d) {axes=[0,1]}
output "loss" %loss
)");
  const KernelizedGraph program = kernelize(graph, false);
  const Placement placement = partition(program, 2, kCpu);
  CHECK(positions_of(program, placement, "bias") == std::vector<Positions>{{0, 1}});
  CHECK(positions_of(program, placement, "loss") == std::vector<Positions>{{1}});
  CHECK(placement.states[static_cast<size_t>(graph.find("u"))] == Positions{0});
  CHECK(placement.states[static_cast<size_t>(graph.find("v"))] == Positions{1});
}

TEST_CASE("an evaluation stays where training holds its states") {
  const std::string text = R"(graph "two" rows 4 micro_batches 1
feed %x: f32[4,16]
state parameter %u: f32[16,16] = zero
state parameter %v: f32[16,16] = zero
%a = matmul(%x, %u) "first"
%b = tanh(%a) "first"
%c = matmul(%b, %v) "second"
%loss = reduce_sum(%c) {axes=[0,1]} "second"
output "loss" %loss
)";
  const Graph graph = parse_graph(text);
  const KernelizedGraph train = kernelize(graph, true);
  const Placement placement = partition(train, 2, kCpu);
  const std::vector<int64_t> stages = evaluation_stages(graph, train, placement);
  CHECK(stages == std::vector<int64_t>{0, 0, 1, 1});
  KernelizedGraph evaluate;
  evaluate.graph = &graph;
  evaluate.groups = fuse(graph, stages);
  const Placement placed = place_evaluation(evaluate, stages, train, placement);
  CHECK(positions_of(evaluate, placed, "b") == std::vector<Positions>{{0}});
  CHECK(positions_of(evaluate, placed, "loss") == std::vector<Positions>{{1}});
}

TEST_CASE("stages are whole layers where that costs little") {
  std::string leaves = "graph \"layers\" rows 4 micro_batches 1\nfeed %h0: f32[4,64]\n";
  std::string nodes;
  for (int l = 0; l < 8; ++l) {
    const std::string n = std::to_string(l);
    leaves += "state parameter %u" + n + ": f32[64,256] = zero\n";
    leaves += "state parameter %v" + n + ": f32[256,64] = zero\n";
    nodes += "%a" + n + " = matmul(%h" + n + ", %u" + n + ")\n%t" + n + " = tanh(%a" + n + ")\n";
    nodes += "%b" + n + " = matmul(%t" + n + ", %v" + n + ")\n";
    nodes += "%h" + std::to_string(l + 1) + " = add(%b" + n + ", %h" + n + ")\n";
  }
  const Graph graph =
      parse_graph(leaves + nodes + "%loss = reduce_sum(%h8) {axes=[0,1]}\noutput \"loss\" %loss\n");
  const KernelizedGraph program = kernelize(graph, true);
  const Placement placement = partition(program, 4, kCpu);
  for (int l = 0; l < 8; ++l) {
    const std::string n = std::to_string(l);
    CHECK(positions_of(program, placement, "a" + n) == std::vector<Positions>{{l / 2}});
    CHECK(positions_of(program, placement, "h" + std::to_string(l + 1)) ==
          std::vector<Positions>{{l / 2}});
  }
}
