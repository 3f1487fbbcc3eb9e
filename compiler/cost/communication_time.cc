#include "cost/communication_time.h"

#include <algorithm>
#include <cmath>

namespace sgtc {
namespace {

using Points = std::vector<std::pair<int64_t, double>>;

double sent_bytes(const CommunicationWork& work) {
  const auto bytes = static_cast<double>(work.bytes);
  if (work.kind == "send" || work.kind == "broadcast") return bytes;
  const auto members = static_cast<double>(work.members);
  const double once = bytes * (members - 1) / members;
  return work.kind == "all_reduce" ? 2 * once : once;
}

// Straight lines between points; below the first one its own time, above the last one the rate of
// the last line.
double interpolate(const Points& points, int64_t bytes) {
  if (bytes <= points.front().first) return points.front().second;
  if (points.size() == 1) {
    return points[0].second * static_cast<double>(bytes) / static_cast<double>(points[0].first);
  }
  size_t end = 1;
  while (end + 1 < points.size() && points[end].first < bytes) ++end;
  const auto& [low, low_seconds] = points[end - 1];
  const auto& [high, high_seconds] = points[end];
  const double slope = (high_seconds - low_seconds) / static_cast<double>(high - low);
  return low_seconds + std::max(slope, 0.0) * static_cast<double>(bytes - low);
}

const MeasuredCommunication* find_measured(const Hardware& hardware,
                                           const CommunicationWork& work) {
  if (work.hosts > 1) return nullptr;
  for (const MeasuredCommunication& measured : hardware.communications) {
    if (measured.kind == work.kind && measured.members == work.members) return &measured;
  }
  return nullptr;
}

double bandwidth_of(const Link& link, int64_t blocks) {
  if (blocks == 0 || link.bytes_per_second_per_block == 0) return link.bytes_per_second;
  const double most = link.bytes_per_second_per_block * static_cast<double>(blocks);
  return std::min(link.bytes_per_second, most);
}

// Of one rank of a ring through all hosts: neighbours on a host use its own links, and as many
// rings as a host has members share the network's.
double ring_bandwidth(const Hardware& hardware, const CommunicationWork& work) {
  const double host = bandwidth_of(hardware.host, work.blocks);
  if (work.hosts == 1) return host;
  const double network = bandwidth_of(hardware.network, work.blocks);
  if (work.members == work.hosts) return network;
  return std::min(host, network * static_cast<double>(work.members / work.hosts));
}

}  // namespace

LinkTraffic traffic_of(const CommunicationWork& work) {
  if (work.members < 2) return {};
  const double bytes = sent_bytes(work);
  if (work.hosts == 1) return {bytes, 0};
  // A ring passes from host to host as often as there are hosts.
  const double share = static_cast<double>(work.hosts) / static_cast<double>(work.members);
  return {bytes * (1 - share), bytes * share};
}

double communication_seconds(const Hardware& hardware, const CommunicationWork& work) {
  if (work.members < 2) return 0;
  if (const MeasuredCommunication* measured = find_measured(hardware, work)) {
    return interpolate(measured->points, work.bytes);
  }
  const Link& link = work.hosts > 1 ? hardware.network : hardware.host;
  const double rounds = work.kind == "send" ? 1 : 1 + std::log2(static_cast<double>(work.members));
  return rounds * link.seconds_per_message + sent_bytes(work) / ring_bandwidth(hardware, work);
}

}  // namespace sgtc
