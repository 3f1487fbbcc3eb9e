#include "memory/assign_offsets.h"

#include <algorithm>
#include <map>
#include <string>

#include "memory/plan_offsets.h"
#include "schedule/arena_alignment.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Of all instances.
int64_t size_of(const plan::Buffer& buffer) {
  return (buffer.count - 1) * buffer.stride + buffer.bytes;
}

// The buffers of one schedule.
struct Region {
  std::vector<size_t> buffers;
  std::vector<Interval> intervals;
};

void place_position(plan::Position& position, const std::vector<BufferUse>& uses,
                    int64_t alignment) {
  SGTC_CHECK(uses.size() == position.buffers.size(), "a use per buffer is expected");
  std::map<std::string, Region> regions;
  int64_t end = 0;
  for (size_t b = 0; b < uses.size(); ++b) {
    plan::Buffer& buffer = position.buffers[b];
    if (uses[b].schedule.empty()) {
      buffer.offset = end;
      end += align(size_of(buffer), alignment);
      continue;
    }
    Region& region = regions[uses[b].schedule];
    region.buffers.push_back(b);
    region.intervals.push_back({size_of(buffer), uses[b].first, uses[b].last, alignment});
  }
  position.arena_bytes = end;
  for (const auto& [schedule, region] : regions) {
    const Offsets offsets = plan_offsets(region.intervals);
    for (size_t i = 0; i < region.buffers.size(); ++i) {
      position.buffers[region.buffers[i]].offset = end + offsets.offsets[i];
    }
    position.arena_bytes = std::max(position.arena_bytes, end + align(offsets.peak, alignment));
  }
}

}  // namespace

void assign_offsets(plan::Plan& plan, const std::vector<std::vector<BufferUse>>& uses) {
  plan.prediction.peak_bytes.clear();
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    place_position(plan.positions[p], uses[p], arena_alignment(plan));
    plan.prediction.peak_bytes.push_back(plan.positions[p].arena_bytes);
  }
}

}  // namespace sgtc
