// One pipeline position of a plan: buffers, tasks, and what the runtime finds by name.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/format.h"
#include "schedule/lifetimes.h"
#include "schedule/step_tasks.h"
#include "schedule/storage.h"
#include "schedule/weights_blob.h"

namespace sgtc {

/// When a buffer of the plan is needed: times of one schedule as in Lifetime, or always.
struct BufferUse {
  std::string schedule;  // empty: always
  int64_t first = 0;
  int64_t last = 0;
  int64_t hole_first = 0;
  int64_t hole_last = -1;
  std::optional<FrameTimes> in_frame;  // as in Lifetime
  std::optional<FrameTimes> in_frame_before;
};

/// One of the two programs of a position on its way into the plan.
struct PositionProgram {
  const KernelizedGraph* program = nullptr;
  const Placement* placement = nullptr;
  bool is_evaluation = false;
  int64_t slots = 1;
  int64_t rings = 1;
  StepCalls step;
  std::vector<StepTask> tasks;
  std::vector<Lifetime> lifetimes;
  std::vector<std::string> buffers;  // name of the buffer of each storage
  std::vector<int64_t> offsets;      // of each storage in its buffer
};

/// Fills in `plan.positions[position]`, and appends feeds, results and states of that position to
/// the plan. `plan.control`, micro-batches and mesh are set already. Returns the use of each
/// buffer.
std::vector<BufferUse> build_position(std::deque<PositionProgram>& programs, int64_t position,
                                      plan::Plan& plan, WeightsBlob& weights);

/// The name of the communicator that a communication uses, and its axis.
std::string communicator_of(const StepTask& task, bool is_evaluation);

}  // namespace sgtc
