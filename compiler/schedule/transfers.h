// Which values travel between pipeline positions, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/placement.h"

namespace sgtc {

struct Transfer {
  ValueId value = kNone;
  int64_t from = 0;
  int64_t to = 0;
  /// kForward and kBackward: once per micro-batch, after the sender's and before the receiver's
  /// tasks of that phase. kUpdate: before the round.
  Phase phase = Phase::kForward;
  int64_t round = 0;
};

struct Exchange {
  std::vector<Transfer> transfers;  // by phase, round, sender, receiver, value
  /// Per group of the update phase: its round, which begins with collectives and transfers. What a
  /// collective reads, or a group from another position, was computed in an earlier round, but for
  /// the results of collectives. Those of other phases are there in round 0.
  std::vector<int64_t> rounds;
  int64_t round_count = 1;
};

/// Every value that a position reads and neither computes nor holds comes straight from the first
/// position that does, once, however many groups read it. A forward value goes to later positions
/// with the forward pass, and to earlier ones, which only their backward pass can need, with the
/// backward pass.
Exchange find_transfers(const KernelizedGraph& program, const Placement& placement);

}  // namespace sgtc
