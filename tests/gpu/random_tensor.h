// Inputs of test graphs.
#pragma once

#include <random>
#include <vector>

#include "ir/tensor.h"

namespace sgtc::testing {

/// Real numbers in [-2, 2), integers in [0, 3], truth values.
inline Tensor random_tensor(const TensorType& type, std::mt19937& random) {
  std::vector<double> values;
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<int> integer(0, type.dtype == DType::kBool ? 1 : 3);
  for (int64_t i = 0; i < element_count(type.shape); ++i) {
    values.push_back(is_float(type.dtype) ? real(random) : integer(random));
  }
  return Tensor(type, values);
}

}  // namespace sgtc::testing
