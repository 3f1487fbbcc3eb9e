// Other cuts and fewer micro-batches in flight, for a pipelined step that exceeds its memory.
//
// The first stage has the most micro-batches in flight, so a cut that balances computing alone
// leaves it with most to compute again, and the others wait for it. What moves: cuts, one good
// place at a time, and the number of micro-batches in flight, which costs a bubble and saves what
// each of them keeps. A shape is estimated without planning it: of each stage what it has to
// compute again (the problem and choice of recompute/), and of the pipeline the time of its passes
// in their order. Only the best estimates are planned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/hardware.h"
#include "partition/partition.h"
#include "recompute/find_problem.h"
#include "schedule/pipeline_order.h"

namespace sgtc {

/// What is chosen of a step beside the nodes that run again.
struct StepShape {
  int64_t stages = 1;
  StageBegins begins{};   // empty: cut where the slowest stage is fastest
  int64_t in_flight = 0;  // as of pipeline_order
  bool operator==(const StepShape&) const = default;
};

/// A pipelined step that was planned, and what its ranks may take.
struct PlacedStep {
  const KernelizedGraph* kernels = nullptr;
  const Placement* placement = nullptr;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  /// Of each position: what its arena needs beyond its states and its recomputation problem.
  std::vector<int64_t> other_bytes;
  int64_t budget = 0;
};

/// Bytes of the states that a position holds.
int64_t state_bytes(const Graph& graph, const Placement& placement, int64_t position);

/// The shapes that are estimated to fit and to be fastest, or else to exceed the budget least, the
/// best first, at most `most`, without that of `step` itself. Found by descent, within a bound on
/// its work: the result depends on the arguments only.
std::vector<StepShape> other_shapes(const PlacedStep& step, const RerunCosts& costs,
                                    const Hardware& hardware, size_t most);

}  // namespace sgtc
