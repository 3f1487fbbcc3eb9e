// The loop over recomputation, cut, schedule and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost/hardware.h"
#include "partition/placement.h"
#include "passes/kernelized_graph.h"
#include "plan/format.h"
#include "search/stage_shapes.h"

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
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  const plan::Plan* plan = nullptr;
};

/// Plans the step that `graph` is, in a shape, and keeps what the result points to.
using StepPlanner = std::function<PlannedStep(const Graph& graph, const StepShape& shape)>;

/// What `fit_memory` found.
struct FittedStep {
  size_t plan = 0;             // number of the planner's call whose plan is the one
  double seconds = 0;          // of a step, as simulated; 0: it was not
  double seconds_without = 0;  // the same without recomputation
  int64_t peak_bytes = 0;      // of the largest arena
  std::string live;            // if it does not fit: what is live at the peak, by kind and layer
};

/// Plans `graph`, a step directly before fusion, as it is, and as long as the plan exceeds the
/// budget again with more nodes that run again in the backward phase (choose_recompute.h). What a
/// plan needs beyond the model of the choice is measured and taken off the budget of the next one.
/// On several stages other cuts and fewer micro-batches in flight are tried as well
/// (stage_shapes.h). Of the plans that fit the one is taken whose simulated step is shortest on
/// `hardware`; if none does, that with the lowest peak.
FittedStep fit_memory(const Graph& graph, int64_t stages, const MemoryRequest& request,
                      const Hardware& hardware, const StepPlanner& planner);

/// The same in one given shape.
FittedStep fit_in_shape(const Graph& graph, const StepShape& shape, const MemoryRequest& request,
                        const Hardware& hardware, const StepPlanner& planner);

/// Another way to do the work of a step, as it is written on the command line.
struct OtherStep {
  std::string option;
  int64_t ranks = 1;  // that it takes for each one of the step itself
  std::function<std::optional<FittedStep>()> fit;
};

/// Throws Error about a step that exceeds the budget: what is live at its peak, and which of
/// `others` and of larger budgets fit, the cheapest first, with their predicted steps. Of others
/// whose options begin with one word, as many are tried as lower the peak, up to the first that
/// fits; one that does not lower it is passed over.
[[noreturn]] void refuse_memory(const FittedStep& found, const MemoryRequest& request,
                                const std::vector<OtherStep>& others);

}  // namespace sgtc
