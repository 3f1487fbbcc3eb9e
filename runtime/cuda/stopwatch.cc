#include "cuda/stopwatch.h"

namespace sgtc::runtime::cuda {

Stopwatch::Stopwatch(const Driver& driver) : driver_(driver) {
  SGTC_CUDA(driver_, cuEventCreate(&start_, kEventDefault));
  SGTC_CUDA(driver_, cuEventCreate(&stop_, kEventDefault));
}

Stopwatch::~Stopwatch() {
  driver_.functions.cuEventDestroy_v2(start_);
  driver_.functions.cuEventDestroy_v2(stop_);
}

void Stopwatch::start(Stream stream) const { SGTC_CUDA(driver_, cuEventRecord(start_, stream)); }

void Stopwatch::stop(Stream stream) const { SGTC_CUDA(driver_, cuEventRecord(stop_, stream)); }

double Stopwatch::seconds() const {
  float milliseconds = 0;
  SGTC_CUDA(driver_, cuEventElapsedTime(&milliseconds, start_, stop_));
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace sgtc::runtime::cuda
