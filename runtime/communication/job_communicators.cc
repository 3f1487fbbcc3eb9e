#include "job_communicators.h"

#include <unistd.h>

#include <algorithm>

#include "failure.h"
#include "groups.h"

namespace sgtc::runtime {
namespace {

bool is_on_one_node(const Group& group, const std::vector<Member>& members) {
  const auto node = [&](int64_t rank) { return members[static_cast<size_t>(rank)].node; };
  return std::all_of(group.ranks.begin(), group.ranks.end(),
                     [&](int64_t rank) { return node(rank) == node(group.ranks[0]); });
}

}  // namespace

JobCommunicators::JobCommunicators(const plan::Plan& plan, Job& job) : watch_(job) {
  if (job.size() == 1) return;
  std::vector<Group> local;
  for (const Group& group : groups_of(plan)) {
    if (!is_on_one_node(group, job.members())) {
      die("communicator " + group.communicator, "its ranks are on several hosts",
          "start all ranks on one host");
    }
    if (job.members()[static_cast<size_t>(group.ranks[0])].node == job.self().node) {
      local.push_back(group);
    }
  }
  const std::string name = "/sgtc-" + job.token() + "-" + std::to_string(job.self().node);
  memory_.emplace(SegmentLayout(local, job.size()), name, job.self().local_rank == 0,
                  [&] { job.barrier(); });
  communicators_.emplace(memory_->bell(job.rank()), watch_,
                         job.self().local_size <= sysconf(_SC_NPROCESSORS_ONLN));
  memory_->add_communicators(job.rank(), *communicators_);
}

}  // namespace sgtc::runtime
