// `optimum` is the oracle: it tries every choice.
#include "recompute/choose_recompute.h"

#include <algorithm>

#include "recompute/random_problem.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// `layers` times: a product makes `wide` from the stream, a cheap function makes `act` from it, a
// product adds to the stream. The backward phase reads wide and act, the last layer's first.
RecomputeProblem layered(int layers) {
  RecomputeProblem problem;
  const int64_t forward = 3 * layers;
  problem.other_bytes.assign(static_cast<size_t>(2 * forward), 0);
  problem.backward_end = 2 * forward - 1;
  int32_t stream = -1;
  const auto add = [&](double seconds, std::vector<int32_t> operands, int64_t bytes, bool read) {
    const auto n = static_cast<int32_t>(problem.nodes.size());
    RecomputeProblem::Node node;
    node.seconds = seconds;
    for (const int32_t operand : operands) {
      if (operand < 0) continue;
      node.operands.push_back({operand, 0});
      int64_t& last = problem.values[static_cast<size_t>(operand)].last_forward;
      last = std::max<int64_t>(last, n);
    }
    node.results = {static_cast<int32_t>(problem.values.size())};
    const int64_t back = 2 * forward - 1 - n;
    problem.values.push_back({bytes, n, n, n, read ? back : -1, read ? back : -1, true});
    problem.nodes.push_back(std::move(node));
    return problem.nodes.back().results[0];
  };
  for (int l = 0; l < layers; ++l) {
    const int32_t wide = add(10, {stream}, 400, true);
    const int32_t act = add(1, {wide}, 400, true);
    stream = add(10, {stream, act}, 100, true);
  }
  return problem;
}

struct Optimum {
  double seconds = -1;  // negative: nothing fits
  int64_t least_peak = INT64_MAX;
};

Optimum optimum(const RecomputeProblem& problem, int64_t budget) {
  Optimum best;
  std::vector<size_t> movable;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    if (problem.nodes[n].may_rerun) movable.push_back(n);
  }
  for (uint64_t bits = 0; bits < uint64_t{1} << movable.size(); ++bits) {
    RecomputeChoice choice(problem.nodes.size(), false);
    for (size_t i = 0; i < movable.size(); ++i) choice[movable[i]] = (bits >> i & 1) != 0;
    const RecomputeCost cost = evaluate(problem, choice);
    best.least_peak = std::min(best.least_peak, cost.peak_bytes);
    if (cost.peak_bytes > budget) continue;
    if (best.seconds < 0 || cost.seconds < best.seconds) best.seconds = cost.seconds;
  }
  return best;
}

RecomputeChoice nothing(const RecomputeProblem& problem) {
  return RecomputeChoice(problem.nodes.size(), false);
}

}  // namespace

TEST_CASE("a kept value is live from where it is made to its last reader") {
  // wide 400 and act 400 of one layer, and the stream 100, are live when the forward phase ends.
  const RecomputeProblem problem = layered(1);
  const RecomputeCost cost = evaluate(problem, nothing(problem));
  CHECK(cost.peak_bytes == 900);
  CHECK(cost.seconds == 0);
}

TEST_CASE("kept values of all slots are live at once") {
  RecomputeProblem problem = layered(1);
  problem.slots = 3;
  CHECK(evaluate(problem, nothing(problem)).peak_bytes == 2700);
}

TEST_CASE("a value that is computed again is live from its first reader on") {
  // Two layers; act of the first runs again at time 10, when the second layer's values are gone.
  const RecomputeProblem problem = layered(2);
  RecomputeChoice choice = nothing(problem);
  choice[1] = true;
  const RecomputeCost cost = evaluate(problem, choice);
  CHECK(cost.seconds == 1);
  CHECK(cost.peak_bytes == 1800 - 400);
}

TEST_CASE("nodes whose results nobody needs do not run") {
  RecomputeProblem problem = layered(1);
  problem.values[2].first_backward = problem.values[2].last_backward = -1;
  RecomputeChoice choice = nothing(problem);
  choice[2] = true;
  CHECK(evaluate(problem, choice).seconds == 0);
  CHECK(needed_nodes(problem, choice) == nothing(problem));
}

TEST_CASE("reading what was in registers costs its bytes") {
  RecomputeProblem problem = layered(1);
  problem.nodes[1].operands[0].seconds = 5;
  RecomputeChoice choice = nothing(problem);
  choice[1] = true;
  CHECK(evaluate(problem, choice).seconds == 6);
  choice[0] = true;
  CHECK(evaluate(problem, choice).seconds == 11);
}

TEST_CASE("what fits is left alone") {
  const RecomputeProblem problem = layered(12);
  CHECK(choose_recompute(problem, 12 * 900) == nothing(problem));
}

TEST_CASE("the cheap function runs again in as many layers as needed") {
  // 12 layers keep 10800 bytes. Each act that runs again saves 400 for one second, and the last
  // layer's is live again at once.
  const RecomputeProblem problem = layered(12);
  const RecomputeChoice choice = choose_recompute(problem, 10800 - 5 * 400);
  CHECK(evaluate(problem, choice).peak_bytes <= 10800 - 5 * 400);
  CHECK(evaluate(problem, choice).seconds == 5);
}

TEST_CASE("everything again keeps what crosses the layers") {
  const RecomputeProblem problem = layered(12);
  const RecomputeCost all = evaluate(problem, recompute_everything(problem));
  CHECK(all.peak_bytes <= 12 * 100 + 2 * 900);
  CHECK(all.seconds <= 12 * 21);
}

TEST_CASE("a budget below everything gives the lowest peak that was found") {
  const RecomputeProblem problem = layered(12);
  const RecomputeCost cost = evaluate(problem, choose_recompute(problem, 1));
  CHECK(cost.peak_bytes <= 12 * 100 + 2 * 900);
}

TEST_CASE("small graphs are solved exactly") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RecomputeProblem problem = random_problem(seed, 9);
    const int64_t whole = evaluate(problem, nothing(problem)).peak_bytes;
    const int64_t budget = whole * static_cast<int64_t>(60 + seed % 40) / 100;
    const Optimum best = optimum(problem, budget);
    const RecomputeCost found = evaluate(problem, choose_recompute(problem, budget));
    INFO("seed " << seed);
    if (best.seconds < 0) {
      CHECK(found.peak_bytes == best.least_peak);
    } else {
      CHECK(found.peak_bytes <= budget);
      CHECK(found.seconds == best.seconds);
    }
  }
}

TEST_CASE("without the exact search costs are within three percent on average") {
  int feasible = 0;
  double found_seconds = 0;
  double best_seconds = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RecomputeProblem problem = random_problem(seed, 11);
    const int64_t whole = evaluate(problem, nothing(problem)).peak_bytes;
    const int64_t budget = whole * static_cast<int64_t>(70 + seed % 30) / 100;
    const Optimum best = optimum(problem, budget);
    const RecomputeCost found = evaluate(problem, choose_recompute(problem, budget, 0));
    INFO("seed " << seed);
    if (best.seconds < 0) continue;
    ++feasible;
    CHECK(found.peak_bytes <= budget);
    found_seconds += found.seconds;
    best_seconds += best.seconds;
  }
  CHECK(feasible > 100);
  CHECK(found_seconds <= 1.03 * best_seconds);
}
