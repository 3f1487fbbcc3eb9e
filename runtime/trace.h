// When each entry of the schedule ran, and on a GPU each kernel, in the format of chrome://tracing
// and Perfetto, with what communication cost each step.
//
// A rank is a process of the trace and a stream a thread of it. Times are of the host's monotonic
// clock: ranks of one host line up, those of several hosts only by their communications.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"
#include "overlap.h"

namespace sgtc::runtime {

/// Keeps the events and steps that came last; its memory is reserved at construction. Several
/// threads may add events at once.
class Trace {
 public:
  struct Event {
    const std::string* task = nullptr;  // outlives the trace
    int64_t stage = 0;
    int64_t stream = 0;
    int64_t micro_batch = 0;
    int64_t begin = 0;  // nanoseconds
    int64_t end = 0;
    const std::string* kernel = nullptr;  // outlives the trace; null: the task's whole entry
    bool communicates = false;
    int64_t latency = 0;  // nanoseconds from when nothing kept it from beginning
  };

  explicit Trace(int64_t capacity, int64_t rank = 0);
  int64_t now() const;
  void add(const Event& event);
  /// All events of a training step have been added. Nobody adds any meanwhile. A step with more
  /// events than are kept has no figures.
  void end_step(int64_t step);
  /// All kept events and steps and the names of rank and streams, as items of a JSON array.
  std::string items() const;
  /// Of all steps since the second, whose start is the first that others do not share.
  OverlapSummary overlap() const { return record_.summary(); }

 private:
  struct Step {
    int64_t number = 0;
    StepOverlap overlap;
  };

  std::vector<Event> events_;
  std::vector<Step> steps_;
  int64_t rank_ = 0;
  std::atomic<int64_t> added_{0};
  int64_t first_of_step_ = 0;  // events before
  int64_t ended_ = 0;          // steps
  OverlapRecord record_;
};

/// Writes the items of all ranks' traces as one document.
MaybeFailure write_trace(const std::string& path, const std::vector<std::string>& items);

/// Nanoseconds of a clock that only moves forward.
int64_t monotonic_nanoseconds();

}  // namespace sgtc::runtime
