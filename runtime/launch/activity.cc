#include "launch/activity.h"

#include <cstdio>

namespace sgtc::runtime {

std::string describe(const Activity& activity) {
  if (activity.step == 0 && activity.entry[0] == '\0') return "start-up";
  std::string text = "step " + std::to_string(activity.step);
  if (activity.entry[0] == '\0') return text;
  text += std::string(", ") + activity.entry;
  return text + " of micro-batch " + std::to_string(activity.micro_batch);
}

void CurrentActivity::set(int64_t step, const char* entry, int64_t micro_batch) {
  // Even two writers at once leave an even version: a reader never waits for ever.
  const uint64_t odd = version_.load() | 1;
  version_.store(odd);
  step_.store(step);
  micro_batch_.store(micro_batch);
  entry_.store(entry);
  version_.store(odd + 1);
}

Activity CurrentActivity::get() const {
  Activity activity;
  const char* entry = nullptr;
  for (uint64_t version = 1; version % 2 == 1 || version != version_.load();) {
    version = version_.load();
    activity.step = step_.load();
    activity.micro_batch = micro_batch_.load();
    entry = entry_.load();
  }
  activity.turns = turns_.load();
  std::snprintf(activity.entry, sizeof activity.entry, "%s", entry ? entry : "");
  return activity;
}

}  // namespace sgtc::runtime
