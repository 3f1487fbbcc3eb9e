// The time of a communication on a machine, and what it sends over which link.
#pragma once

#include <cstdint>
#include <string>

#include "cost/hardware.h"

namespace sgtc {

/// One communication of `members` ranks on `hosts` hosts.
struct CommunicationWork {
  std::string kind;   // as of a plan's task; both ends of a transfer are "send"
  int64_t bytes = 0;  // of the larger side of one rank
  int64_t members = 2;
  int64_t hosts = 1;   // that the members are on
  int64_t blocks = 0;  // of a GPU that it may use; 0: no bound
};

/// What one rank sends, on average over the members.
struct LinkTraffic {
  double host = 0;     // bytes to ranks of its own host
  double network = 0;  // bytes to others
};

/// Bytes that leave each rank: of a ring for collectives (Patarasu and Yuan, 2009), so
/// 2 (n - 1) / n of the tensor for an all-reduce, half of it for its two halves alone; the bytes
/// themselves for a broadcast. A transfer counts at the sender.
LinkTraffic traffic_of(const CommunicationWork& work);

/// Seconds from when all members take part until all are done, with the links to themselves. A
/// measured communication of that kind and number of members within a host is interpolated, and
/// extrapolated at the rate of its last two points. Any other takes a message's latency for each
/// of the 1 + log2(members) rounds of a tree, and the bytes of `traffic_of` at the rate of the
/// slowest link, where each rank of a host brings its own share of the network.
double communication_seconds(const Hardware& hardware, const CommunicationWork& work);

}  // namespace sgtc
