// What is live in an arena while a schedule runs, read off a plan.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/format.h"

namespace sgtc {

struct LiveBuffer {
  const plan::Buffer* buffer = nullptr;
  int64_t instances = 0;  // live at the same time
  int64_t bytes = 0;      // of all of them
};

/// The moment of a schedule when most bytes are live.
struct LivePeak {
  int64_t bytes = 0;
  int64_t entry = -1;            // -1: the schedule is empty
  int64_t call = 0;              // within the entry
  std::vector<LiveBuffer> live;  // largest first
};

/// Entries count in list order. Persistent buffers, feeds and results are live all along; any
/// other instance from a write to the last use before the next write that follows a read. What all
/// its users write is workspace of each, and live while one runs. Communications run beside kernels
/// as streams and waits let them: what one reads is live up to the next kernels that come after it,
/// what it writes from the end of those that it comes after, but for one that reads and is followed
/// in its stream by one that writes: the latter's place in the list ends and begins both. So the
/// peak is that of a run, at least that of a run in list order.
LivePeak find_live_peak(const plan::Plan& plan, const plan::Position& position,
                        const std::string& schedule);

/// One instance of a buffer while it holds something that is needed.
struct LiveSpan {
  const plan::Buffer* buffer = nullptr;
  int64_t instance = 0;
  int64_t first = 0;  // times, both included
  int64_t last = 0;
};

struct LiveSpans {
  /// Of each time the entry and the call within it. A communication is one time.
  std::vector<std::pair<int64_t, int64_t>> times;
  std::vector<LiveSpan> spans;
};

/// What is live in a run of the schedule, by the same rule.
LiveSpans find_live_spans(const plan::Plan& plan, const plan::Position& position,
                          const std::string& schedule);

/// The most bytes that are live during each entry of the schedule, by the same rule.
std::vector<int64_t> live_bytes_of_entries(const plan::Plan& plan, const plan::Position& position,
                                           const std::string& schedule);

}  // namespace sgtc
