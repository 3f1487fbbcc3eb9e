#include "step_times.h"

namespace sgtc::runtime {

void StepTimes::add(double milliseconds) {
  if (added_ > 0) latest_[static_cast<size_t>(added_ - 1) % latest_.size()] = milliseconds;
  ++added_;
}

double StepTimes::median() const {
  std::array<double, kKept> sorted = latest_;
  const auto middle = sorted.begin() + count() / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count());
  return *middle;
}

}  // namespace sgtc::runtime
