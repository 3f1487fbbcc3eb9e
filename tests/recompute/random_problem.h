// Random recomputation problems, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "recompute/recompute_problem.h"

namespace sgtc {

/// `count` nodes in chains with skips, of which some may not run again and some have two results.
/// The backward phase reads two of three values, in about the reverse order, once or twice.
inline RecomputeProblem random_problem(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  RecomputeProblem problem;
  const auto times = static_cast<int64_t>(2 * count);
  for (int64_t t = 0; t < times; ++t) problem.other_bytes.push_back(below(50));
  problem.backward_end = times - 1;
  problem.slots = 1 + below(3);
  std::vector<size_t> made;  // values before each node
  for (size_t n = 0; n < count; ++n) {
    const auto time = static_cast<int64_t>(n);
    RecomputeProblem::Node node;
    node.seconds = static_cast<double>(1 + below(100));
    node.may_rerun = below(8) != 0;
    for (size_t back = 1; back <= std::min<size_t>(made.size(), 4); ++back) {
      if (back > 1 && below(3) != 0) continue;
      const size_t value = made[made.size() - back];
      node.operands.push_back({static_cast<int32_t>(value), static_cast<double>(below(3))});
      problem.values[value].last_forward = time;
    }
    for (int64_t result = below(6) == 0 ? 2 : 1; result > 0; --result) {
      const int64_t first = below(3) != 0 ? std::min(times - 1, times - 1 - time + below(3)) : -1;
      const int64_t last = first < 0 ? -1 : std::min(times - 1, first + below(4));
      made.push_back(problem.values.size());
      node.results.push_back(static_cast<int32_t>(problem.values.size()));
      problem.values.push_back(
          {10 + below(200), static_cast<int32_t>(n), time, time, first, last, below(4) != 0});
    }
    problem.nodes.push_back(std::move(node));
  }
  return problem;
}

}  // namespace sgtc
