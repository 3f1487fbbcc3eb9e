// The learning rate as a function of the step.
#pragma once

#include <cstdint>
#include <string>

namespace sgtc::runtime {

struct LearningRate {
  double peak = 1e-3;
  int64_t warmup = 0;          // steps
  std::string decay = "none";  // none | linear | cosine
  int64_t steps = 0;           // total
  /// Of step 1, 2 … `steps`. Steps up to `warmup` have peak * step / warmup. After that, with
  /// f = (step - 1 - warmup) / (steps - warmup), which is 0 first and would be 1 one step after the
  /// last: peak, peak * (1 - f) or peak * (1 + cos(pi f)) / 2.
  double at(int64_t step) const;
};

}  // namespace sgtc::runtime
