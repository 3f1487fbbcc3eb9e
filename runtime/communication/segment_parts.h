// Between the files that implement segment_communicator.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "communicator.h"
#include "segment.h"

namespace sgtc::runtime {

/// What the operations of one member on one group share.
struct SegmentMember {
  GroupMemory memory;
  int64_t member = 0;
  int64_t rounds = 0;  // issued so far
  /// Per counter, a value that all members are known to have reached; saves looking at them.
  int64_t all_staged = 0;
  int64_t all_produced = 0;
  int64_t all_taken = 0;

  RoundCounters& own() const { return memory.counters(member); }
  bool all_reached(std::atomic<int64_t> RoundCounters::* counter, int64_t& known, int64_t value);
  /// Moves an own counter on by one and wakes up who may wait for it.
  void publish(std::atomic<int64_t>& counter) const;
};

/// One direction of a pair, as the member at one end of it counts.
struct SegmentChannel {
  ChannelCounters* counters = nullptr;
  unsigned char* ring = nullptr;
  int64_t capacity = 0;
  Bell* peer = nullptr;
  int64_t issued = 0;  // bytes of all operations so far
};

std::unique_ptr<Operation> make_collective(SegmentMember& member,
                                           const CommunicationRequest& request);
std::unique_ptr<Operation> make_transfer(SegmentChannel& channel,
                                         const CommunicationRequest& request);

}  // namespace sgtc::runtime
