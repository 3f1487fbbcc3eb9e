#include "cuda/launch_times.h"

namespace sgtc::runtime::cuda {

LaunchTimes::LaunchTimes(const Driver& driver, size_t launches) : driver_(driver) {
  marks_.resize(launches + 1);
  for (Event& mark : marks_) SGTC_CUDA(driver_, cuEventCreate(&mark, kEventDefault));
}

LaunchTimes::~LaunchTimes() {
  for (const Event mark : marks_) driver_.functions.cuEventDestroy_v2(mark);
}

void LaunchTimes::mark(Stream stream, size_t done) const {
  SGTC_CUDA(driver_, cuEventRecord(marks_[done], stream));
}

double LaunchTimes::seconds() const {
  float milliseconds = 0;
  SGTC_CUDA(driver_, cuEventElapsedTime(&milliseconds, marks_.front(), marks_.back()));
  return static_cast<double>(milliseconds) * 1e-3;
}

void LaunchTimes::add_to(Trace& trace, const std::vector<Launch>& launches) const {
  std::vector<int64_t> reached;  // nanoseconds since the first mark
  for (const Event mark : marks_) {
    float milliseconds = 0;
    SGTC_CUDA(driver_, cuEventElapsedTime(&milliseconds, marks_.front(), mark));
    reached.push_back(static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
  }
  const int64_t begin = trace.now() - reached.back();
  for (size_t i = 0; i < launches.size(); ++i) {
    Trace::Event event;
    event.task = launches[i].task;
    if (launches[i].kernel) event.kernel = &launches[i].kernel->symbol;
    event.stream = launches[i].stream;
    event.micro_batch = launches[i].micro_batch;
    event.begin = begin + reached[i];
    event.end = begin + reached[i + 1];
    trace.add(event);
  }
}

}  // namespace sgtc::runtime::cuda
