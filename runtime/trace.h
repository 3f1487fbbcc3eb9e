// When each entry of the schedule ran, and on a GPU each kernel, in the format of chrome://tracing
// and Perfetto.
//
// A rank is a process of the trace and a stream a thread of it. Times are of the host's monotonic
// clock: ranks of one host line up, those of several hosts only by their communications.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {

/// Keeps the events that came last; its memory is reserved at construction. Several threads may add
/// events at once.
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
  };

  explicit Trace(int64_t capacity, int64_t rank = 0);
  int64_t now() const;
  void add(const Event& event);
  /// All kept events and the names of rank and streams, as items of a JSON array.
  std::string items() const;

 private:
  std::vector<Event> events_;
  int64_t rank_ = 0;
  std::atomic<int64_t> added_{0};
};

/// Writes the items of all ranks' traces as one document.
MaybeFailure write_trace(const std::string& path, const std::vector<std::string>& items);

/// Nanoseconds of a clock that only moves forward.
int64_t monotonic_nanoseconds();

}  // namespace sgtc::runtime
