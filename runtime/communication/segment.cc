#include "segment.h"

#include <algorithm>
#include <new>

namespace sgtc::runtime {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;
constexpr int64_t kLeastPieceBytes = 4 << 10;
constexpr int64_t kGroupBytes = 4 << 20;  // for all pieces of a group, while they are not least

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Large enough that copies are not bound by latency, and no larger than its messages need.
int64_t choose_piece_bytes(const RankGroup& group) {
  const int64_t members = static_cast<int64_t>(group.ranks.size());
  const int64_t share = round_up((group.collective_bytes + members - 1) / members, 4096);
  const int64_t affordable = kGroupBytes / (members * members * kRoundSlots) / 4096 * 4096;
  return std::max(std::min({kPieceBytes, affordable, share}), kLeastPieceBytes);
}

// Sets memory aside: returns the offset of `bytes` more.
int64_t take(int64_t bytes, int64_t& end) {
  const int64_t offset = end;
  end = round_up(end + bytes, 64);
  return offset;
}

SegmentLayout::Channel lay_out(const RankGroup::Channel& channel, int64_t& end) {
  SegmentLayout::Channel result;
  result.from = channel.from;
  result.to = channel.to;
  result.capacity = std::clamp<int64_t>(round_up(channel.bytes, 4096), 4096, kRingBytes);
  result.counters = take(sizeof(ChannelCounters), end);
  result.ring = take(result.capacity, end);
  return result;
}

SegmentLayout::GroupLayout lay_out(const RankGroup& group, int64_t& end) {
  SegmentLayout::GroupLayout result;
  const int64_t members = static_cast<int64_t>(group.ranks.size());
  result.group = group;
  result.counters = take(members * static_cast<int64_t>(sizeof(RoundCounters)), end);
  if (group.collective_bytes >= 0) {
    result.piece_bytes = choose_piece_bytes(group);
    end = round_up(end, 4096);
    result.pieces = take(members * kRoundSlots * members * result.piece_bytes, end);
  }
  for (const RankGroup::Channel& channel : group.channels) {
    result.channels.push_back(lay_out(channel, end));
  }
  return result;
}

}  // namespace

SegmentLayout::SegmentLayout(const std::vector<RankGroup>& list, int64_t rank_count)
    : ranks(rank_count) {
  bytes = rank_count * static_cast<int64_t>(sizeof(Bell));
  for (const RankGroup& group : list) groups.push_back(lay_out(group, bytes));
}

GroupMemory::GroupMemory(const SegmentLayout::GroupLayout& layout, unsigned char* base)
    : layout_(layout), base_(base) {}

RoundCounters& GroupMemory::counters(int64_t member) const {
  return reinterpret_cast<RoundCounters*>(base_ + layout_.counters)[member];
}

unsigned char* GroupMemory::piece(int64_t member, int64_t round, int64_t share) const {
  const int64_t slot = member * kRoundSlots + round % kRoundSlots;
  return base_ + layout_.pieces + (slot * members() + share) * layout_.piece_bytes;
}

Bell& GroupMemory::bell(int64_t member) const {
  return reinterpret_cast<Bell*>(base_)[layout_.group.ranks[static_cast<size_t>(member)]];
}

const SegmentLayout::Channel* GroupMemory::find_channel(int64_t from, int64_t to) const {
  for (const SegmentLayout::Channel& channel : layout_.channels) {
    if (channel.from == from && channel.to == to) return &channel;
  }
  return nullptr;
}

ChannelCounters& GroupMemory::counters(const SegmentLayout::Channel& channel) const {
  return *reinterpret_cast<ChannelCounters*>(base_ + channel.counters);
}

unsigned char* GroupMemory::ring(const SegmentLayout::Channel& channel) const {
  return base_ + channel.ring;
}

void construct_segment(const SegmentLayout& layout, unsigned char* base) {
  for (int64_t rank = 0; rank < layout.ranks; ++rank) {
    new (base + rank * static_cast<int64_t>(sizeof(Bell))) Bell;
  }
  for (const SegmentLayout::GroupLayout& group : layout.groups) {
    for (size_t member = 0; member < group.group.ranks.size(); ++member) {
      new (base + group.counters + static_cast<int64_t>(member * sizeof(RoundCounters)))
          RoundCounters;
    }
    for (const SegmentLayout::Channel& channel : group.channels) {
      new (base + channel.counters) ChannelCounters;
    }
  }
}

}  // namespace sgtc::runtime
