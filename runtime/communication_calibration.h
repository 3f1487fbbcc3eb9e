// Communications between ranks, measured one by one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "communication/groups.h"
#include "executor.h"
#include "plan/format.h"

namespace sgtc::runtime {

/// A kind of communication of a plan, between the ranks of one of its groups.
struct CommunicationCase {
  static constexpr int64_t kEverywhere = -2;

  std::string kind;  // send stands for both ends of a transfer
  int64_t members = 2;
  std::string communicator;
  std::string back;      // transfers: a communicator that sends the other way; empty: none
  int64_t position = 0;  // of the members, or of the sender
  int64_t peer = -1;     // transfers: position of the receiver; kEverywhere: all positions
  int64_t bytes = 0;     // of the largest, the larger side

  /// Whether the rank at these coordinates takes part.
  bool includes(const Coordinates& coordinates) const;
  /// Whether it is the one that measures.
  bool measures(const Coordinates& coordinates) const;
};

/// One case for each kind and number of members that the plan uses, the same on all ranks.
std::vector<CommunicationCase> communication_cases(const plan::Plan& plan);

/// Bytes and median seconds of communications of several sizes up to the case's. All ranks that it
/// includes call this at the same time; what others than the measuring one get is no result.
std::vector<std::pair<int64_t, double>> measure_communication(const CommunicationCase& each,
                                                              const Coordinates& coordinates,
                                                              RankCommunicators& communicators,
                                                              Executor& executor);

}  // namespace sgtc::runtime
