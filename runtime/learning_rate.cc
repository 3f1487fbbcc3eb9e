#include "learning_rate.h"

#include <algorithm>

#include "elementary.h"

namespace sgtc::runtime {

double LearningRate::at(int64_t step) const {
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const double length = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  const double f = std::min(1.0, static_cast<double>(step - 1 - warmup) / length);
  if (decay == "linear") return peak * (1 - f);
  if (decay == "cosine") {
    double cosine;
    double sine;
    cosine_sine(f / 2, cosine, sine);
    return peak * 0.5 * (1 + cosine);
  }
  return peak;
}

}  // namespace sgtc::runtime
