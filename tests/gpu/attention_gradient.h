// The gradient of an attention on the GPU, and its reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/attention_problem.h"

namespace sgtc::testing {

/// Gradients of q [batch, heads, queries, size], and of k and v [batch, key_heads, keys, size].
struct AttentionGradients {
  std::vector<double> q, k, v;
};

/// In double precision.
AttentionGradients reference_gradients(const AttentionProblem& problem);

/// Both kernels of the gradient, ready to start after the forward pass.
class AttentionGradientRun {
 public:
  AttentionGradientRun(const std::string& folder, AttentionProblem& problem, int64_t blocks);
  void start_queries() const { query_kernel_.start(query_launch_, query_); }
  void start_keys() const { key_kernel_.start(key_launch_, key_); }

  void poison();
  AttentionGradients gradients() const;

 private:
  Kernel query_kernel_, key_kernel_;
  Launch query_launch_, key_launch_;
  kernels::AttentionGradientTestLaunch query_ = {}, key_ = {};
  DeviceMemory maps_, query_items_, key_items_, terms_, q_, k_, v_;
};

}  // namespace sgtc::testing
