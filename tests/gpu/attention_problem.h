// One attention on the GPU with random operands, the kernels that compute it, and its reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/sm_90a/schedule.h"
#include "attention/sm_90a/test/launch.h"
#include "gpu/cuda_driver.h"

namespace sgtc::testing {

struct AttentionSizes {
  int64_t batch, heads, key_heads, queries, keys, size;
  bool causal;
  /// q, k and v lie in one tensor [batch, sequence, heads + 2 key_heads, size], as a layer's
  /// product leaves them; queries and keys must be as many. Else each is [batch, heads, sequence,
  /// size].
  bool packed;
};

/// "d64", "d64_wide" or "d128", in the cubin that holds it.
struct AttentionVariant {
  const char* cubin;
  kernels::AttentionForm form;
};
AttentionVariant attention_variant(const std::string& kernel);

/// A view {size, sequence, heads, batch} of bfloat16 in a random tensor.
struct AttentionOperand {
  int64_t heads, sequence;
  int64_t offset, row_stride, head_stride, batch_stride;
  uint32_t seed;

  double value(int64_t batch, int64_t head, int64_t row, int64_t element) const;
  /// All of one head, [sequence, size].
  std::vector<double> values(int64_t batch, int64_t head, int64_t size) const;
};

class AttentionProblem {
 public:
  /// `folder` holds the cubins.
  AttentionProblem(const std::string& folder, const AttentionSizes& sizes);

  const AttentionSizes& sizes() const { return sizes_; }
  const AttentionOperand& q() const { return q_; }
  const AttentionOperand& k() const { return k_; }
  const AttentionOperand& v() const { return v_; }
  /// The gradient of the output, always [batch, heads, queries, size].
  const AttentionOperand& gradient() const { return gradient_; }
  hopper::TensorMap map_of(const AttentionOperand& operand, uint32_t rows) const;
  hopper::TensorMap map_of_output() const;
  DeviceMemory& output() { return output_; }
  /// Of each query's scores, and of exp(score - maximum): [batch, heads, queries].
  DeviceMemory& maximum() { return maximum_; }
  DeviceMemory& sum() { return sum_; }
  /// Of any kernel of this problem, without its rounds.
  kernels::AttentionSm90aShape shape() const;

  void poison();
  /// Of one query, in double precision.
  struct Reference {
    std::vector<double> output;  // [size]
    double maximum = 0, sum = 0;
  };
  Reference reference(int64_t batch, int64_t head, int64_t query) const;

 private:
  DeviceAddress address_of(const AttentionOperand& operand) const;

  AttentionSizes sizes_;
  AttentionOperand q_, k_, v_, gradient_;
  DeviceMemory q_memory_, k_memory_, v_memory_, gradient_memory_, output_, maximum_, sum_;
};

/// A kernel with its maps and table of work, ready to start.
class AttentionRun {
 public:
  AttentionRun(const std::string& folder, AttentionProblem& problem, const std::string& kernel,
               int64_t blocks);
  void start() const;

 private:
  Kernel kernel_;
  Launch launch_;
  kernels::AttentionTestLaunch parameters_ = {};
  DeviceMemory maps_, items_;
};

}  // namespace sgtc::testing
