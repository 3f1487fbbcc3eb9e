// The parameters of the kernels with which the matrix product is tested and measured.
#pragma once

#include "matmul/sm_90a/launch.h"

namespace sgtc::kernels {

/// `result` and what follows are the visitor's arguments; strides in elements.
struct MatmulTestLaunch {
  MatmulSm90aShape shape;
  MatmulSm90aTensors tensors;
  void* result;        // bfloat16 [batch, rows, stride], or float for split sums
  void* second;        // the visitor's second tensor
  int64_t stride;      // of rows, in all tensors with rows
  int64_t batch_rows;  // rows of one batch element
};

}  // namespace sgtc::kernels
