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
  const uint64_t odd = version_.load(std::memory_order_relaxed) | 1;
  version_.store(odd, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  step_.store(step, std::memory_order_relaxed);
  micro_batch_.store(micro_batch, std::memory_order_relaxed);
  entry_.store(entry, std::memory_order_relaxed);
  version_.store(odd + 1, std::memory_order_release);
}

Activity CurrentActivity::get() const {
  Activity activity;
  const char* entry = nullptr;
  for (uint64_t version = 1; version % 2 == 1 || version != version_.load();) {
    version = version_.load(std::memory_order_acquire);
    activity.step = step_.load(std::memory_order_relaxed);
    activity.micro_batch = micro_batch_.load(std::memory_order_relaxed);
    entry = entry_.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  std::snprintf(activity.entry, sizeof activity.entry, "%s", entry ? entry : "");
  return activity;
}

}  // namespace sgtc::runtime
