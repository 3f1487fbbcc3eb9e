// Parts of an arena, as few as possible: each costs an operation per step.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/format.h"
#include "plan_memory.h"

namespace sgtc::runtime::cuda {

/// The ranges in ascending order, without empty ones. Those that touch are joined, and so are those
/// with nothing but padding between them: bytes that no buffer of the position has.
std::vector<MemoryRange> join_ranges(std::vector<MemoryRange> ranges,
                                     const plan::Position& position, const PlanMemory& memory);

/// The whole pages that the ranges lie in, in ascending order and apart from each other.
std::vector<MemoryRange> pages_of(const std::vector<MemoryRange>& ranges, int64_t page_bytes);

/// The range in pieces of which each lies either inside one of `others` or apart from all of them.
/// These are apart from each other, in ascending order.
std::vector<MemoryRange> cut_at_borders(MemoryRange range, const std::vector<MemoryRange>& others);

}  // namespace sgtc::runtime::cuda
