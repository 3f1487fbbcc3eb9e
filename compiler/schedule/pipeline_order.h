// In which order a pipeline stage works on its micro-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sgtc {

enum class PipelineSchedule : uint8_t {
  kGPipe,  // all forward passes, then all backward passes (Huang et al., 2019)
  k1F1B,   // one forward, one backward as soon as possible (Narayanan et al., 2019)
};

struct PipelineStep {
  Phase phase = Phase::kForward;  // or kBackward
  int64_t micro_batch = 0;
  bool operator==(const PipelineStep&) const = default;
};

/// The forward and backward passes of `stage` (0 … stages - 1). Micro-batches are in ascending
/// order in both, whatever the schedule, so gradients are added in the same order. There may be
/// fewer micro-batches than stages. At most `in_flight` are between forward and backward on a
/// stage, if that is not 0: each keeps its activations, and fewer of them idle longer.
std::vector<PipelineStep> pipeline_order(PipelineSchedule schedule, int64_t stages, int64_t stage,
                                         int64_t micro_batches, int64_t in_flight = 0);

/// The most micro-batches of the order that are between forward and backward at once: slots that
/// activations need.
int64_t slots_of(const std::vector<PipelineStep>& order);

/// "F0 F1 B0 F2 B1 B2".
std::string to_text(const std::vector<PipelineStep>& order);

}  // namespace sgtc
