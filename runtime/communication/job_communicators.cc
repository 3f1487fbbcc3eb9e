#include "job_communicators.h"

#include <algorithm>
#include <cstdlib>

#include "failure.h"
#include "groups.h"

namespace sgtc::runtime {
namespace {

bool is_on_one_node(const RankGroup& group, const std::vector<Member>& members) {
  const auto node = [&](int64_t rank) { return members[static_cast<size_t>(rank)].node; };
  return std::all_of(group.ranks.begin(), group.ranks.end(),
                     [&](int64_t rank) { return node(rank) == node(group.ranks[0]); });
}

// What rank 0 wants holds for all.
bool forces_gloo(Job& job) {
  const char* variable = std::getenv("SGTC_TRANSPORT");
  const std::string transport = job.broadcast(variable ? variable : "");
  if (transport.empty() || transport == "gloo") return transport == "gloo";
  die_usage("SGTC_TRANSPORT", "\"" + transport + "\" is not a transport",
            "use gloo, or leave it unset for shared memory within a host");
}

// The host in HOST:PORT, without the brackets of an IPv6 address.
std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host.empty() ? "localhost" : host;
}

}  // namespace

JobCommunicators::JobCommunicators(const plan::Plan& plan, Job& job) : watch_(job) {
  if (job.size() == 1) return;
  if (plan.target != "cpu") {
    std::vector<int64_t> nodes;
    for (const Member& member : job.members()) nodes.push_back(member.node);
    peers_.emplace(Peers{job.rank(), std::move(nodes),
                         [&job](std::string_view data) { return job.all_gather(data); }, watch_});
    return;
  }
  const bool forced = forces_gloo(job);
  std::vector<RankGroup> local;
  std::vector<RankGroup> remote;
  for (const RankGroup& group : groups_of(plan)) {
    const bool shares = !forced && is_on_one_node(group, job.members());
    (shares ? local : remote).push_back(group);
  }
  share_memory(local, job);
  if (remote.empty()) return;
  network_.emplace(
      remote, job.rank(), job.size(), host_of(job.master()),
      [&](std::string_view data) { return job.all_gather(data); }, watch_);
  network_->add_communicators(*communicators_);
}

// Every rank has a bell in its host's segment, also one that has no group there.
void JobCommunicators::share_memory(const std::vector<RankGroup>& groups, Job& job) {
  const Member& self = job.self();
  std::vector<RankGroup> own_node;
  for (const RankGroup& group : groups) {
    const Member& first = job.members()[static_cast<size_t>(group.ranks[0])];
    if (first.node == self.node) own_node.push_back(group);
  }
  const std::string name = "/sgtc-" + job.token() + "-" + std::to_string(self.node);
  memory_.emplace(SegmentLayout(own_node, job.size()), name, self.local_rank == 0,
                  [&] { job.barrier(); });
  communicators_.emplace(memory_->bell(job.rank()), watch_, job.has_own_cpu());
  memory_->add_communicators(job.rank(), *communicators_);
}

}  // namespace sgtc::runtime
