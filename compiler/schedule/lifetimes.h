// When each storage of a step holds something that is still needed.
//
// Positions are the numbers of the calls in one micro-batch's order (prologue, forward, backward,
// update). On one stage a step is that order with forward and backward repeated, one micro-batch
// after the other, so what lives within one micro-batch lives at the same positions in each of
// them. What outlives a micro-batch (stacked rows, results) is live in all of the repeated part
// that it touches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/storage.h"

namespace sgtc {

struct Lifetime {
  bool used = false;
  std::string scope;  // as in plan::Buffer
  int64_t first = 0;  // positions, both included
  int64_t last = 0;
};

/// The lifetime of each storage. Results that are read after the step live until position
/// `calls.size()`. `is_evaluation`: every micro-batch keeps its outputs. Throws InternalError when
/// a value crosses from one micro-batch's phase to a phase of all of them.
std::vector<Lifetime> find_lifetimes(const StepCalls& step, int64_t micro_batches,
                                     bool is_evaluation);

}  // namespace sgtc
