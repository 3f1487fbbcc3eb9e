// File descriptors from process to process, among ranks of one host.
//
// They pass over sockets of the host that have no name in the file system and need no right to look
// into other processes. A rank takes them from the processes alone that the job knows by number and
// user.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "communication/peers.h"
#include "launch/socket.h"

namespace sgtc::runtime {

/// The descriptors of other ranks, by rank.
using Descriptors = std::map<int64_t, std::vector<Socket>>;

/// Gives `own` to each of the ranks `others`, each of which gives as many to this one. A collective
/// of all ranks of the job. A rank that cannot be reached, since it is on another host or in
/// another container, is not in the result. At most kMostDescriptors, which may be none.
Descriptors exchange_descriptors(const Peers& peers, const std::vector<int64_t>& others,
                                 const std::vector<int>& own);

inline constexpr size_t kMostDescriptors = 8;

}  // namespace sgtc::runtime
