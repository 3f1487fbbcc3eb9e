// One matrix product on the GPU with random operands, the kernels that compute it, and its
// reference in double precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/cuda_driver.h"
#include "matmul/sm_90a/schedule.h"
#include "matmul/sm_90a/test/launch.h"

namespace sgtc::testing {

/// Random bfloat16 of an operand: `lines` are rows of a, columns of b.
struct Operand {
  int64_t batch, lines, depth;
  bool line_major;  // contiguous along the lines
  uint32_t seed;
  float scale;

  int64_t stride() const;  // of the outer dimension in elements: padded to 16
  int64_t outer() const { return line_major ? depth : lines; }
  int64_t elements() const { return batch * outer() * stride(); }
  double value(int64_t batch_index, int64_t line, int64_t k) const;
};

struct MatmulSizes {
  int64_t batch, rows, columns, depth;
};

/// What a kernel's name says: "pingpong_pair_dl".
struct MatmulVariant {
  kernels::MatmulForm form;
  bool line_major_a, line_major_b;
};
MatmulVariant parse_variant(const std::string& name);

/// Operands and results in device memory. The second tensor serves the visitors: bias, residual,
/// second result or row sums.
class MatmulProblem {
 public:
  /// `folder` holds the cubins.
  MatmulProblem(const std::string& folder, const MatmulSizes& sizes, bool line_major_a,
                bool line_major_b);

  const MatmulSizes& sizes() const { return sizes_; }
  const Operand& a() const { return a_; }
  const Operand& b() const { return b_; }
  int64_t stride() const { return stride_; }
  DeviceAddress a_address() const { return a_memory_.address(); }
  DeviceAddress b_address() const { return b_memory_.address(); }
  DeviceMemory& result() { return result_; }
  DeviceMemory& second() { return second_; }

  /// Poisons the results and makes the second tensor that a visitor reads.
  void prepare(const std::string& visitor);
  double product(int64_t batch, int64_t row, int64_t column) const;
  double bias(int64_t column) const;
  double residual(int64_t batch, int64_t row, int64_t column) const;

  /// Elements that are still poison, and padding that is not.
  struct Poison {
    uint64_t unwritten, overwritten;
  };
  Poison count_poison(const DeviceMemory& tensor) const;
  uint64_t count_differences(const DeviceMemory& x, const DeviceMemory& y) const;

 private:
  void fill(DeviceMemory& memory, uint32_t seed, float scale) const;

  std::string helpers_;
  MatmulSizes sizes_;
  Operand a_, b_;
  int64_t stride_;
  DeviceMemory a_memory_, b_memory_, result_, second_;
};

struct MatmulOptions {
  std::string visitor = "plain";
  std::string kernel;
  int64_t blocks = 132;
  int64_t raster_group = 8;
  bool split_depth = false;
};

/// A kernel with its maps, table of work and workspace, ready to start.
class MatmulRun {
 public:
  MatmulRun(const std::string& folder, MatmulProblem& problem, const MatmulOptions& options);
  void start() const;

 private:
  Kernel kernel_;
  Launch launch_;
  kernels::MatmulTestLaunch parameters_ = {};
  DeviceMemory maps_, items_, partial_sums_, flags_;
};

}  // namespace sgtc::testing
