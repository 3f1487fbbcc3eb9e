// What is live in an arena while a schedule runs, read off a plan.
#pragma once

#include <cstdint>
#include <string>
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
/// its users write is workspace of each, and live while one runs.
LivePeak find_live_peak(const plan::Plan& plan, const plan::Position& position,
                        const std::string& schedule);

/// The most bytes that are live during each entry of the schedule, by the same rule.
std::vector<int64_t> live_bytes_of_entries(const plan::Plan& plan, const plan::Position& position,
                                           const std::string& schedule);

}  // namespace sgtc
