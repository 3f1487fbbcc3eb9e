// cuBLAS as a peer to measure against, loaded at run time.
#pragma once

#include <string>

#include "gpu/matmul_problem.h"

namespace sgtc::testing {

class Cublas {
 public:
  /// `file` is libcublas.so.N. Ends the program with status 1 where it cannot be loaded.
  explicit Cublas(const std::string& file);
  /// Starts problem.result() = a b, bfloat16 with sums in single precision. One batch element.
  void start(MatmulProblem& problem) const;

 private:
  struct Functions;
  const Functions* functions_;
  void* handle_ = nullptr;
};

}  // namespace sgtc::testing
