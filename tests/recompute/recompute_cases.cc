// Writes random recomputation problems and what was chosen for each, a JSON object per line, for an
// oracle in another language: recompute_cases CASES FEWEST_NODES MOST_NODES
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "recompute/choose_recompute.h"
#include "recompute/random_problem.h"

namespace sgtc {
namespace {

nlohmann::json to_json(const RecomputeProblem& problem) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const RecomputeProblem::Node& node : problem.nodes) {
    nlohmann::json operands = nlohmann::json::array();
    for (const RecomputeProblem::Operand& operand : node.operands) {
      operands.push_back({{"value", operand.value}, {"seconds", operand.seconds}});
    }
    nodes.push_back({{"may_rerun", node.may_rerun},
                     {"seconds", node.seconds},
                     {"operands", operands},
                     {"results", node.results}});
  }
  nlohmann::json values = nlohmann::json::array();
  for (const RecomputeProblem::Value& value : problem.values) {
    values.push_back({{"bytes", value.bytes},
                      {"node", value.node},
                      {"made", value.made},
                      {"last_forward", value.last_forward},
                      {"first_backward", value.first_backward},
                      {"last_backward", value.last_backward},
                      {"stored", value.stored}});
  }
  return {{"nodes", nodes},
          {"values", values},
          {"other_bytes", problem.other_bytes},
          {"slots", problem.slots},
          {"backward_end", problem.backward_end}};
}

// The budget is between the peak without recomputation and about the lowest one.
nlohmann::json solved(const RecomputeProblem& problem, uint64_t seed) {
  const RecomputeChoice nothing(problem.nodes.size(), false);
  const int64_t whole = evaluate(problem, nothing).peak_bytes;
  const int64_t least = evaluate(problem, choose_recompute(problem, 0)).peak_bytes;
  const int64_t budget = least + (whole - least) * static_cast<int64_t>(seed % 10) / 10;
  const RecomputeChoice choice = choose_recompute(problem, budget);
  const RecomputeCost cost = evaluate(problem, choice);
  return {{"seed", seed},     {"problem", to_json(problem)}, {"budget", budget},
          {"choice", choice}, {"seconds", cost.seconds},     {"peak_bytes", cost.peak_bytes}};
}

}  // namespace
}  // namespace sgtc

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CASES FEWEST_NODES MOST_NODES\n", argv[0]);
    return 2;
  }
  const uint64_t cases = std::strtoull(argv[1], nullptr, 10);
  const uint64_t fewest = std::strtoull(argv[2], nullptr, 10);
  const uint64_t most = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const size_t nodes = fewest + seed % (most - fewest + 1);
    const nlohmann::json line = sgtc::solved(sgtc::random_problem(seed, nodes), seed);
    std::printf("%s\n", line.dump().c_str());
  }
  return 0;
}
