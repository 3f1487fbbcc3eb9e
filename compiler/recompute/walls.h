// Places of the forward phase behind which few bytes are live.
#pragma once

#include <vector>

#include "recompute/recompute_problem.h"

namespace sgtc {

/// Per value whether it crosses a wall and so may not be computed again; without walls, then with
/// walls closer and closer to each other.
std::vector<std::vector<bool>> all_walls(const RecomputeProblem& problem);

}  // namespace sgtc
