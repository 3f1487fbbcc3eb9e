#include "cuda/ranges.h"

#include <algorithm>

namespace sgtc::runtime::cuda {
namespace {

unsigned char* end_of(const MemoryRange& range) { return range.data + range.bytes; }

// All instances of a buffer.
MemoryRange extent(const plan::Buffer& buffer, const PlanMemory& memory) {
  return {memory.address(buffer), (buffer.count - 1) * buffer.stride + buffer.bytes};
}

bool is_padding(const unsigned char* begin, const unsigned char* end,
                const plan::Position& position, const PlanMemory& memory) {
  return std::none_of(position.buffers.begin(), position.buffers.end(),
                      [&](const plan::Buffer& buffer) {
                        const MemoryRange range = extent(buffer, memory);
                        return range.data < end && begin < end_of(range);
                      });
}

template <typename MayJoin>
std::vector<MemoryRange> join(std::vector<MemoryRange> ranges, const MayJoin& may_join) {
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.data < b.data; });
  std::vector<MemoryRange> joined;
  for (const MemoryRange& range : ranges) {
    if (range.bytes == 0) continue;
    if (joined.empty() || !may_join(end_of(joined.back()), range.data)) {
      joined.push_back(range);
    } else {
      MemoryRange& last = joined.back();
      last.bytes = std::max(end_of(last), end_of(range)) - last.data;
    }
  }
  return joined;
}

}  // namespace

std::vector<MemoryRange> join_ranges(std::vector<MemoryRange> ranges,
                                     const plan::Position& position, const PlanMemory& memory) {
  return join(std::move(ranges), [&](const unsigned char* end, const unsigned char* begin) {
    return begin <= end || is_padding(end, begin, position, memory);
  });
}

std::vector<MemoryRange> pages_of(const std::vector<MemoryRange>& ranges, int64_t page_bytes) {
  std::vector<MemoryRange> pages;
  const auto page = static_cast<uintptr_t>(page_bytes);
  for (const MemoryRange& range : ranges) {
    const auto begin = reinterpret_cast<uintptr_t>(range.data);
    const uintptr_t before = begin % page;
    const uintptr_t bytes = (before + static_cast<uintptr_t>(range.bytes) + page - 1) / page * page;
    pages.push_back({range.data - before, static_cast<int64_t>(bytes)});
  }
  return join(std::move(pages),
              [](const unsigned char* end, const unsigned char* begin) { return begin <= end; });
}

std::vector<MemoryRange> cut_at_borders(MemoryRange range, const std::vector<MemoryRange>& others) {
  std::vector<MemoryRange> pieces;
  const auto cut = [&](unsigned char* border) {
    if (border <= range.data || border >= end_of(range)) return;
    pieces.push_back({range.data, border - range.data});
    range = {border, end_of(range) - border};
  };
  for (const MemoryRange& other : others) {
    cut(other.data);
    cut(end_of(other));
  }
  pieces.push_back(range);
  return pieces;
}

}  // namespace sgtc::runtime::cuda
