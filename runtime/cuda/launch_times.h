// When each launch of a schedule ran on the GPU, for a trace.
#pragma once

#include <vector>

#include "cuda/driver.h"
#include "cuda/launches.h"
#include "trace.h"

namespace sgtc::runtime::cuda {

/// Events before, between and after launches that follow each other in one stream. A launch then
/// takes from the end of the one before to its own, its start included.
class LaunchTimes {
 public:
  /// The driver must outlive this.
  LaunchTimes(const Driver& driver, size_t launches);
  ~LaunchTimes();
  LaunchTimes(const LaunchTimes&) = delete;
  LaunchTimes& operator=(const LaunchTimes&) = delete;

  /// Marks the place in `stream` after `done` launches.
  void mark(Stream stream, size_t done) const;

  /// From the first mark to the last. The GPU has reached both.
  double seconds() const;

  /// Adds an event for each launch. The GPU reached the last mark just now.
  void add_to(Trace& trace, const std::vector<Launch>& launches) const;

 private:
  const Driver& driver_;
  std::vector<Event> marks_;
};

}  // namespace sgtc::runtime::cuda
