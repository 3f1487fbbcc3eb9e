#include "recompute/walls.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sgtc {
namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

// Bytes of values of the forward phase that later nodes of it read, behind each node.
std::vector<int64_t> bytes_behind(const RecomputeProblem& problem) {
  std::vector<size_t> last_reader(problem.values.size(), 0);
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    for (const auto& operand : problem.nodes[n].operands) last_reader[at(operand.value)] = n;
  }
  std::vector<int64_t> change(problem.nodes.size() + 1, 0);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const size_t made = at(problem.values[v].node);
    if (last_reader[v] <= made) continue;
    change[made] += problem.values[v].bytes;
    change[last_reader[v]] -= problem.values[v].bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

// Per value whether it crosses a wall.
std::vector<bool> crossing(const RecomputeProblem& problem, const std::vector<size_t>& walls) {
  std::vector<bool> crosses(problem.values.size(), false);
  const auto part = [&](size_t node) {
    return std::lower_bound(walls.begin(), walls.end(), node) - walls.begin();
  };
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    for (const auto& operand : problem.nodes[n].operands) {
      const size_t maker = at(problem.values[at(operand.value)].node);
      if (part(maker) != part(n)) crosses[at(operand.value)] = true;
    }
  }
  return crosses;
}

// Nodes behind which a wall stands: within each window of `period` kept bytes, where the fewest
// bytes are live; of equals the last.
std::vector<size_t> walls_every(const RecomputeProblem& problem, int64_t period,
                                const std::vector<int64_t>& behind) {
  std::vector<size_t> walls;
  int64_t kept = 0;
  size_t best = 0;
  bool is_open = false;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    for (const int32_t result : problem.nodes[n].results) {
      const RecomputeProblem::Value& value = problem.values[at(result)];
      if (value.first_backward >= 0) kept += value.bytes;
    }
    if (kept < period) continue;
    if (!is_open || behind[n] <= behind[best]) best = n;
    is_open = true;
    if (kept < 2 * period) continue;
    walls.push_back(best);
    is_open = false;
    kept = 0;
    n = best;
  }
  return walls;
}

int64_t kept_bytes(const RecomputeProblem& problem) {
  int64_t bytes = 0;
  for (const auto& value : problem.values) bytes += value.first_backward >= 0 ? value.bytes : 0;
  return bytes;
}

}  // namespace

std::vector<std::vector<bool>> all_walls(const RecomputeProblem& problem) {
  const std::vector<int64_t> behind = bytes_behind(problem);
  std::vector<std::vector<bool>> result = {std::vector<bool>(problem.values.size(), false)};
  std::vector<size_t> last;
  for (int64_t period = kept_bytes(problem) / 2; period > 0; period = period * 2 / 3) {
    const std::vector<size_t> walls = walls_every(problem, period, behind);
    if (walls.size() > problem.nodes.size() / 4) break;
    if (walls == last || walls.empty()) continue;
    last = walls;
    result.push_back(crossing(problem, walls));
  }
  return result;
}

}  // namespace sgtc
