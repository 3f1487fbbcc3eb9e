// What work in a stream takes.
#pragma once

#include "cuda/driver.h"

namespace sgtc::runtime::cuda {

class Stopwatch {
 public:
  /// The driver must outlive this.
  explicit Stopwatch(const Driver& driver);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(Stream stream) const;
  void stop(Stream stream) const;
  /// From start to stop, both of which the GPU has reached.
  double seconds() const;

 private:
  const Driver& driver_;
  Event start_ = nullptr;
  Event stop_ = nullptr;
};

}  // namespace sgtc::runtime::cuda
