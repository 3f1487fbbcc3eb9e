// The loop over recomputation, cut, schedule and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cost/hardware.h"
#include "partition/placement.h"
#include "passes/kernelized_graph.h"
#include "plan/format.h"

namespace sgtc {

enum class Recompute : uint8_t {
  kNone,  // everything that the backward phase reads is kept
  kAuto,  // as little is computed again as the budget asks for
  kFull,  // of each layer only what the next one reads is kept
};

struct MemoryRequest {
  int64_t budget = 0;  // bytes of each rank's arena; 0: no limit
  Recompute recompute = Recompute::kAuto;
};

/// A step that is planned to the end.
struct PlannedStep {
  const KernelizedGraph* kernels = nullptr;
  const Placement* placement = nullptr;
  std::vector<int64_t> slots;  // of each position
  const plan::Plan* plan = nullptr;
};

/// Plans the step that `graph` is, on so many pipeline stages, and keeps what the result points to.
using StepPlanner = std::function<PlannedStep(const Graph& graph, int64_t stages)>;

/// What `fit_memory` did.
struct FittedStep {
  size_t plan = 0;             // number of the planner's call whose plan is the one
  double seconds = 0;          // of a step, as simulated; 0: it was not
  double seconds_without = 0;  // the same without recomputation
  int64_t peak_bytes = 0;      // of the largest arena
};

/// Plans `graph`, a step directly before fusion, as it is, and as long as the plan exceeds the
/// budget again with more nodes that run again in the backward phase (choose_recompute.h). What a
/// plan needs beyond the model of the choice is measured and taken off the budget of the next one.
/// Times are those that `hardware` is predicted to take.
///
/// Throws Error if nothing fits: it says what is live at the peak, by layer and kind, and tries
/// with how many more stages the step would fit and what it would cost.
FittedStep fit_memory(const Graph& graph, int64_t stages, const MemoryRequest& request,
                      const Hardware& hardware, const StepPlanner& planner);

}  // namespace sgtc
