#include "measurements.h"

#include <algorithm>

namespace sgtc::runtime {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sgtc::runtime
