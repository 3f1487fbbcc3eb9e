// When each storage of a step holds something that is still needed, on one position.
//
// Times are the numbers of the calls in one micro-batch's order (prologue, forward, backward,
// update). With one slot a step is that order with forward and backward repeated, one micro-batch
// after the other, so what lives within one micro-batch lives at the same times in each of them.
// With several slots the forward and backward passes of different micro-batches mix: what a
// micro-batch keeps from its forward to its backward pass is then live in all of the repeated part,
// and only what lives within one pass shares bytes with others.
//
// Communication runs beside the kernels. What the update phase communicates is ordered with the
// kernels by the rounds; gradients that are reduced early live until the update anyway. What a
// transfer brings or takes and a micro-batch keeps lives like all that it keeps. For the rest of
// what transfers touch, the finished schedule says how long they may take
// (schedule/transfer_lifetimes.h); until then it lives for the whole step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/step_tasks.h"
#include "schedule/storage.h"

namespace sgtc {

/// The first and the last time of something that lies in a frame (memory/frames.h).
struct FrameTimes {
  int64_t first = 0;
  int64_t last = 0;
};

struct Lifetime {
  bool used = false;
  std::string scope;  // as in plan::Buffer
  /// Times, both included, without those of a hole between them, if `hole_first` <= `hole_last`.
  int64_t first = 0;
  int64_t last = 0;
  int64_t hole_first = 0;
  int64_t hole_last = -1;
  /// The forward and backward passes of one micro-batch alone use it: each writes it anew, at these
  /// times of the micro-batch's own order, after those that had the slot before have ended and
  /// before the next ones begin.
  std::optional<FrameTimes> in_frame;
  /// It may lie in the slot before that of its micro-batch as well, or before the first one: at
  /// these times, where those of its own micro-batch count on from all of the one before.
  std::optional<FrameTimes> in_frame_before;
  /// Transfers of the passes use it and nothing but the schedule orders it with other calls.
  bool beside_passes = false;
};

/// How a position works on micro-batches.
struct PassInfo {
  int64_t micro_batches = 1;
  int64_t slots = 1;
  bool is_evaluation = false;  // every micro-batch keeps its outputs
};

/// The lifetime of each storage. Results that are read after the step live until time
/// `calls.size()`. Throws InternalError when a value crosses from one micro-batch's phase to a
/// phase of all of them.
std::vector<Lifetime> find_lifetimes(const StepCalls& step, const std::vector<StepTask>& tasks,
                                     const PassInfo& passes);

}  // namespace sgtc
