// When each entry of the schedule ran, in the format of chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {

/// Keeps the events that came last; its memory is reserved at construction.
class Trace {
 public:
  struct Event {
    const std::string* task = nullptr;  // outlives the trace
    int64_t stage = 0;
    int64_t stream = 0;
    int64_t micro_batch = 0;
    int64_t begin = 0;  // nanoseconds
    int64_t end = 0;
  };

  explicit Trace(int64_t capacity);
  int64_t now() const;
  void add(const Event& event);
  /// Writes all kept events as one JSON document.
  MaybeFailure write(const std::string& path) const;

 private:
  std::vector<Event> events_;
  int64_t added_ = 0;
};

/// Nanoseconds of a clock that only moves forward.
int64_t monotonic_nanoseconds();

}  // namespace sgtc::runtime
