// How many bytes tensors have.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace sgtc {

/// Bytes of one tensor.
inline int64_t bytes_of(const TensorType& type) {
  return element_count(type.shape) * size_of(type.dtype);
}

}  // namespace sgtc
