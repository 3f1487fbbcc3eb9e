// Offsets of buffers in one arena.
#pragma once

#include <cstdint>
#include <vector>

namespace sgtc {

/// A buffer that holds `size` bytes from position `first` to position `last`, both included, and
/// not from `hole_first` to `hole_last` between them, if these are positions in order. Positions
/// count kernel calls in the order of a step; negative ones lie before it.
struct Interval {
  int64_t size = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t alignment = 64;  // a power of two
  int64_t hole_first = 0;
  int64_t hole_last = -1;
};

struct Offsets {
  std::vector<int64_t> offsets;  // of each buffer, a multiple of its alignment
  int64_t peak = 0;              // bytes of the arena
};

/// The most bytes that are live at one position, each buffer rounded up to its alignment: no
/// placement has a lower peak when all alignments are equal.
int64_t live_bound(const std::vector<Interval>& intervals);

/// Places every interval so that intervals which overlap in time do not share a byte. The peak is
/// the least for small instances of one alignment, and for others close to `live_bound` as a rule.
/// The result depends on the arguments only.
Offsets plan_offsets(const std::vector<Interval>& intervals);

}  // namespace sgtc
