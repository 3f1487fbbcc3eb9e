// The parameters of the kernels with which attention is tested and measured.
#pragma once

#include "attention/sm_90a/launch.h"

namespace sgtc::kernels {

/// `result` and what follows are the visitor's arguments (matmul/sm_90a/test/visitor.h).
struct AttentionTestLaunch {
  AttentionSm90aShape shape;
  AttentionSm90aTensors tensors;
  void* result;  // bfloat16 [batch * heads, queries, size]
  void* second;
  int64_t stride;
  int64_t batch_rows;
};

/// `result` is the gradient of q, or that of k with that of v in `second`.
struct AttentionGradientTestLaunch {
  AttentionSm90aShape shape;
  AttentionGradientSm90aTensors tensors;
  void* result;
  void* second;
  int64_t stride;
  int64_t batch_rows;
};

}  // namespace sgtc::kernels
