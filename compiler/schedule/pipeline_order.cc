#include "schedule/pipeline_order.h"

#include <algorithm>

namespace sgtc {

std::vector<PipelineStep> pipeline_order(PipelineSchedule schedule, int64_t stages, int64_t stage,
                                         int64_t micro_batches, int64_t in_flight) {
  // Forward passes that lead the backward passes: those of the later stages are under way.
  const bool all_first = schedule == PipelineSchedule::kGPipe;
  int64_t lead = all_first ? micro_batches : std::min(stages - stage, micro_batches);
  if (in_flight > 0) lead = std::min(lead, in_flight);
  std::vector<PipelineStep> order;
  for (int64_t m = 0; m < lead; ++m) order.push_back({Phase::kForward, m});
  for (int64_t m = 0; m < micro_batches; ++m) {
    order.push_back({Phase::kBackward, m});
    if (lead + m < micro_batches) order.push_back({Phase::kForward, lead + m});
  }
  return order;
}

int64_t slots_of(const std::vector<PipelineStep>& order) {
  int64_t live = 0;
  int64_t most = 1;
  for (const PipelineStep& step : order) {
    live += step.phase == Phase::kForward ? 1 : -1;
    most = std::max(most, live);
  }
  return most;
}

std::string to_text(const std::vector<PipelineStep>& order) {
  std::string text;
  for (const PipelineStep& step : order) {
    text += (text.empty() ? "" : " ");
    text += (step.phase == Phase::kForward ? "F" : "B") + std::to_string(step.micro_batch);
  }
  return text;
}

}  // namespace sgtc
