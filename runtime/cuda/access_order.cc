#include "cuda/access_order.h"

#include <algorithm>

namespace sgtc::runtime::cuda {

void AccessOrder::cut(unsigned char* address) {
  const auto next = segments_.upper_bound(address);
  if (next == segments_.begin()) return;
  const auto inside = std::prev(next);
  if (inside->first == address || inside->second.end <= address) return;
  segments_.emplace_hint(next, address, inside->second);
  inside->second.end = address;
}

AccessOrder::Segments::iterator AccessOrder::cover(const MemoryRange& range) {
  unsigned char* const end = range.data + range.bytes;
  cut(range.data);
  cut(end);
  unsigned char* covered = range.data;
  auto next = segments_.lower_bound(range.data);
  while (covered < end) {
    if (next != segments_.end() && next->first == covered) {
      covered = next->second.end;
      ++next;
      continue;
    }
    unsigned char* const gap_end =
        next == segments_.end() ? end : std::min(end, next->first);
    segments_.emplace_hint(next, covered, Segment{gap_end, false, 0, {}});
    covered = gap_end;
  }
  return segments_.lower_bound(range.data);
}

std::vector<size_t> AccessOrder::add(size_t launch, const std::vector<Access>& accesses) {
  std::vector<size_t> after;
  // Writes come last, so that a launch that reads and writes the same bytes does not find itself.
  for (const bool writes : {false, true}) {
    for (const Access& access : accesses) {
      if (access.writes != writes || access.range.bytes == 0) continue;
      unsigned char* const end = access.range.data + access.range.bytes;
      for (auto at = cover(access.range); at != segments_.end() && at->first < end; ++at) {
        Segment& segment = at->second;
        const bool is_read = !segment.readers.empty();
        if (segment.written && !(writes && is_read)) after.push_back(segment.writer);
        if (!writes) {
          segment.readers.push_back(launch);
          continue;
        }
        after.insert(after.end(), segment.readers.begin(), segment.readers.end());
        segment.written = true;
        segment.writer = launch;
        segment.readers.clear();
      }
    }
  }
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  const auto self = std::lower_bound(after.begin(), after.end(), launch);
  if (self != after.end() && *self == launch) after.erase(self);
  return after;
}

}  // namespace sgtc::runtime::cuda
