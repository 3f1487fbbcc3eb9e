#include "learning_rate.h"

#include <algorithm>
#include <cmath>

namespace sgtc::runtime {

double LearningRate::at(int64_t step) const {
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const double length = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  const double f = std::min(1.0, static_cast<double>(step - 1 - warmup) / length);
  if (decay == "linear") return peak * (1 - f);
  if (decay == "cosine") return peak * 0.5 * (1 + std::cos(3.14159265358979323846 * f));
  return peak;
}

}  // namespace sgtc::runtime
