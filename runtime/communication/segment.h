// Memory that the ranks of one host share: who finds what where in it.
//
// A segment holds a bell for every rank of the job and, for each group of ranks that communicate
// through it, counters, pieces for collectives and a ring for each pair of ranks that sends and
// receives. All counters begin at zero, only grow, and are written by one member each; how many
// bytes lie between two of them follows from their difference. So nothing is ever reset, and no
// lock is taken.
//
// The layout is a pure function of the groups, which all ranks compute alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "bell.h"
#include "groups.h"

namespace sgtc::runtime {

/// A collective is cut into rounds; these count how many of them the member is through with.
struct RoundCounters {
  alignas(64) std::atomic<int64_t> staged{0};    // its input lies in its pieces
  alignas(64) std::atomic<int64_t> produced{0};  // its own share of the result is there
  alignas(64) std::atomic<int64_t> taken{0};     // it has all that it wants from the others
};

/// A ring of bytes from one member to another.
struct ChannelCounters {
  alignas(64) std::atomic<int64_t> written{0};
  alignas(64) std::atomic<int64_t> read{0};
};

/// The largest ring between two members: a message up to this size leaves its sender at once.
inline constexpr int64_t kRingBytes = 256 << 10;

/// Rounds whose pieces are kept: how far members may be apart within collectives.
inline constexpr int64_t kRoundSlots = 4;

struct SegmentLayout {
  struct Channel {
    int64_t from = 0;  // members
    int64_t to = 0;
    int64_t counters = 0;  // offsets
    int64_t ring = 0;
    int64_t capacity = 0;
  };
  struct GroupLayout {
    RankGroup group;
    int64_t counters = 0;  // offset of one RoundCounters per member
    int64_t pieces = 0;    // offset of [member][slot][share] pieces
    int64_t piece_bytes = 0;
    std::vector<Channel> channels;
  };

  /// `ranks` is the size of the job, which all ranks in `groups` are below.
  SegmentLayout(const std::vector<RankGroup>& groups, int64_t ranks);

  int64_t ranks = 0;
  std::vector<GroupLayout> groups;
  int64_t bytes = 0;
};

/// A segment as a member of a group sees it. `base` is 64-byte aligned.
class GroupMemory {
 public:
  GroupMemory(const SegmentLayout::GroupLayout& layout, unsigned char* base);

  int64_t members() const { return static_cast<int64_t>(layout_.group.ranks.size()); }
  int64_t piece_bytes() const { return layout_.piece_bytes; }
  RoundCounters& counters(int64_t member) const;
  /// The piece that `member` wrote for `share` in the slot of round `round`; those of one member
  /// and round are contiguous.
  unsigned char* piece(int64_t member, int64_t round, int64_t share) const;
  Bell& bell(int64_t member) const;
  const std::string& name() const { return layout_.group.communicator; }
  /// Null if the plan says nothing of such a channel.
  const SegmentLayout::Channel* find_channel(int64_t from, int64_t to) const;
  ChannelCounters& counters(const SegmentLayout::Channel& channel) const;
  unsigned char* ring(const SegmentLayout::Channel& channel) const;

 private:
  const SegmentLayout::GroupLayout& layout_;
  unsigned char* base_;
};

/// Makes bells and counters in zeroed memory. By one rank, before the others look.
void construct_segment(const SegmentLayout& layout, unsigned char* base);

}  // namespace sgtc::runtime
