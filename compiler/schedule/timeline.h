// The schedules of all positions, from what each computes and what they exchange.
//
// A pipeline deadlocks when two ranks wait for each other's messages in different orders, and loses
// time when a message is posted late. Both are settled by one simulation of the step: every
// communication gets a place in one order of the whole mesh, that of the simulated times, and each
// position issues its own in that order. Along one order nothing can wait in a circle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/format.h"
#include "schedule/pipeline_order.h"
#include "schedule/step_tasks.h"

namespace sgtc {

/// What one position contributes.
struct PositionTasks {
  const StepCalls* step = nullptr;
  std::vector<StepTask> tasks;
  std::vector<double> seconds;      // of each task
  std::vector<PipelineStep> order;  // of forward and backward passes
  int64_t slots = 1;
  int64_t rings = 1;          // instances of what is in a ring
  std::vector<bool> in_ring;  // of each storage
};

struct Timeline {
  std::vector<std::vector<plan::Entry>> entries;  // per position
  double seconds = 0;                             // from first to last
  double bubble = 0;  // part of the positions' time, from first to last, in which none computes
};

/// Streams of entries: kernels, transfers, collectives.
inline constexpr int64_t kComputeStream = 0;
inline constexpr int64_t kTransferStream = 1;
inline constexpr int64_t kCollectiveStream = 2;

/// One step: the prologue of every micro-batch, the passes of each position in its order, the
/// rounds of the update. An entry waits for what it reads and, before it overwrites an instance of
/// a slot or a ring, for those that use the earlier contents.
Timeline build_timeline(const std::vector<PositionTasks>& positions, int64_t micro_batches);

}  // namespace sgtc
