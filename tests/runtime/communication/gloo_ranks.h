// Several ranks as processes that Gloo connects over the loopback interface.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/communication/gloo_network.h"
#include "runtime/communication/processes.h"

namespace sgtc::runtime {

inline ConnectRanks by_gloo() {
  return [](Meeting& meeting, const std::vector<RankGroup>& groups, int64_t rank, int64_t ranks,
            const RankBody& body) {
    MeetingWatch watch(meeting);
    const auto all_gather = [&](std::string_view data) {
      return gather_by_meeting(meeting, rank, ranks, data);
    };
    GlooNetwork network(groups, rank, ranks, "127.0.0.1", all_gather, watch);
    Bell bell;
    RankCommunicators communicators(bell, watch, false);
    network.add_communicators(communicators);
    const Bytes result = body(rank, communicators);
    meeting.barrier(ranks);
    return result;
  };
}

}  // namespace sgtc::runtime
