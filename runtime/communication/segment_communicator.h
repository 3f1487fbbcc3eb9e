// Communication through memory that all members share: of one process or of one host.
//
// Collectives are cut into rounds in which every member has a share. A member stages its input for
// the others' shares, produces its own share (reducing what all staged for it, in their order), and
// takes the shares that the others produced; it goes on with another round while peers are still at
// this one, so that copying in, reducing and copying out overlap. A message that is small enough
// is staged whole, and every member reduces all of it: that needs one meeting instead of two.
// Left out: letting peers read the arena directly, which would save the copies but ties all
// arenas to shared memory.
#pragma once

#include <cstdint>

#include "rank_communicators.h"
#include "segment.h"

namespace sgtc::runtime {

/// Adds the communicators of `rank` over the groups that it is a member of. The layout and the
/// segment at `base` must outlive them.
void add_segment_communicators(const SegmentLayout& layout, unsigned char* base, int64_t rank,
                               RankCommunicators& communicators);

}  // namespace sgtc::runtime
