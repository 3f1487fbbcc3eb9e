#include "recompute/find_problem.h"

#include <algorithm>

#include "recompute/choose_recompute.h"
#include "schedule/plan_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// 128 bytes each but for the loss. The backward phase reads b, and x itself.
const char* const kStep = R"(graph "g" rows 4 micro_batches 1
feed %x: f32[4,8]
state parameter %w: f32[4,8] = zero
%a = mul(%x, %w)
%b = tanh(%a)
%loss = reduce_sum(%b) {axes=[0,1]}
%d = neg(%b) @backward
%g = mul(%d, %x) @backward
%n = sub(%w, %g) @update
output "loss" %loss
update %w = %n
)";

// Up to the sum of the gradients of micro-batches.
const std::string kAccumulated = R"(feed %x: f32[4,8]
state parameter %w: f32[4,8] = zero
state accumulator %s: f32[4,8] = zero
%a = mul(%x, %w)
%loss = reduce_sum(%a) {axes=[0,1]}
%d = neg(%a) @backward
%sum = accumulate(%s, %d) @backward
)";

PositionProblem problem_of(const Graph& graph) {
  const KernelizedGraph program = kernelize(graph, false);
  const RerunCosts costs = {std::vector<double>(program.groups.size(), 1), 1e9, 1e9};
  return find_problem(program, place_on_one(program), 0, 1, costs);
}

const RecomputeProblem::Value& value_of(const PositionProblem& found, const Graph& graph,
                                        const std::string& name) {
  const NodeId node = graph.value(graph.find(name)).producer;
  const auto at = std::find(found.nodes.begin(), found.nodes.end(), node) - found.nodes.begin();
  const std::vector<int32_t>& results = found.problem.nodes[static_cast<size_t>(at)].results;
  return found.problem.values[static_cast<size_t>(results.front())];
}

}  // namespace

TEST_CASE("a problem has the times and bytes of what the forward phase makes") {
  const Graph graph = parse_graph(kStep);
  const PositionProblem found = problem_of(graph);
  REQUIRE(found.nodes.size() == 3);
  const RecomputeProblem::Value& a = value_of(found, graph, "a");
  CHECK((a.bytes == 128 && a.made == 0 && a.last_forward == 1 && a.first_backward == -1));
  const RecomputeProblem::Value& b = value_of(found, graph, "b");
  CHECK((b.made == 1 && b.last_forward == 2 && b.first_backward == 3 && b.last_backward == 3));
  CHECK(found.problem.backward_end == 4);
}

TEST_CASE("what runs again costs the time of its kernels") {
  const Graph graph = parse_graph(kStep);
  const RecomputeProblem problem = problem_of(graph).problem;
  CHECK(evaluate(problem, {true, true, false}).seconds == 2);
}

TEST_CASE("results of the step never run again") {
  const Graph graph = parse_graph(kStep);
  const PositionProblem found = problem_of(graph);
  CHECK(found.problem.nodes[1].may_rerun);
  CHECK_FALSE(found.problem.nodes[2].may_rerun);
}

TEST_CASE("what overwrites a state needs no bytes of its own") {
  // The loss lives to the end; d until g is computed; g until the update, which is in place.
  const Graph graph = parse_graph(kStep);
  CHECK(problem_of(graph).problem.other_bytes == std::vector<int64_t>{0, 0, 4, 132, 260, 132});
}

TEST_CASE("sums over micro-batches are in the state that they add to") {
  const Graph graph = parse_graph("graph \"g\" rows 4 micro_batches 2\n" + kAccumulated +
                                  R"(%n = sub(%w, %sum) @update
output "loss" %loss
update %w = %n
)");
  CHECK(problem_of(graph).problem.other_bytes == std::vector<int64_t>{0, 4, 132, 132, 4});
}

TEST_CASE("sums over replicas replace what they sum") {
  const Graph graph = parse_graph("graph \"g\" rows 4 micro_batches 2 replicas 2\n" + kAccumulated +
                                  R"(%all = all_reduce(%sum) @update
%loss_all = all_reduce(%loss) @update
%n = sub(%w, %all) @update
output "loss" %loss_all
update %w = %n
)");
  // Without room for the sum over replicas beside the accumulator.
  CHECK(problem_of(graph).problem.other_bytes == std::vector<int64_t>{0, 4, 132, 132, 4, 4, 4});
}
