#include "launch/job.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "failure.h"
#include "launch/cpu_share.h"
#include "launch/host.h"
#include "launch/monitor.h"
#include "launch/rendezvous.h"
#include "signals.h"
#include "thread_pool.h"

namespace sgtc::runtime {
namespace {

Monitor* monitor_of_process = nullptr;

void tell_others(int exit_code) { monitor_of_process->leave(exit_code); }

Introduction introduce(const LaunchEnvironment& environment, const JobOptions& options) {
  Introduction self;
  self.rank = environment.rank;
  self.size = environment.size;
  self.pid = getpid();
  self.host = host_name();
  self.identity = host_identity();
  self.cpus = cpu_list(allowed_cpus());
  self.fingerprint = options.fingerprint;
  self.agreement = options.agreement;
  return self;
}

// Members in rank order, with nodes numbered as they appear.
std::vector<Member> members_of(const std::vector<Introduction>& introductions) {
  std::map<std::string, int64_t> nodes;
  std::vector<int64_t> sizes;
  std::vector<Member> members;
  for (const Introduction& introduction : introductions) {
    const int64_t next = static_cast<int64_t>(nodes.size());
    const int64_t node = nodes.emplace(introduction.identity, next).first->second;
    sizes.resize(nodes.size());
    const int64_t local_rank = sizes[static_cast<size_t>(node)]++;
    members.push_back(
        {introduction.rank, introduction.host, node, local_rank, 0, introduction.pid});
  }
  for (Member& member : members) member.local_size = sizes[static_cast<size_t>(member.node)];
  return members;
}

// Divides the CPUs among the ranks that were given the same ones: a launcher may have divided them
// already. Returns this rank's number of CPUs, 0 if there is less than one per rank.
int64_t take_cpus(const std::vector<Introduction>& introductions, int64_t rank) {
  const Introduction& self = introductions[static_cast<size_t>(rank)];
  int64_t index = 0;
  int64_t count = 1;
  for (const Introduction& other : introductions) {
    if (other.identity != self.identity || other.cpus != self.cpus || other.rank == rank) continue;
    if (other.rank < rank) ++index;
    ++count;
  }
  const std::vector<int> cpus = allowed_cpus();
  const std::vector<int> share = cpu_share(cpus, index, count);
  if (share.size() < cpus.size() && !binding_is_off()) bind_to_cpus(share);
  return static_cast<int64_t>(cpus.size()) / count;
}

}  // namespace

Job::Job() = default;

Job::~Job() {
  if (!monitor_) return;
  set_exit_hook(nullptr);
  monitor_of_process = nullptr;
}

std::unique_ptr<Job> Job::alone() {
  std::unique_ptr<Job> job(new Job);
  job->members_ = {{0, host_name(), 0, 0, 1, getpid()}};
  job->threads_ = static_cast<int64_t>(allowed_cpus().size());
  return job;
}

std::unique_ptr<Job> Job::join(const LaunchEnvironment& environment, const JobOptions& options) {
  if (environment.size == 1) return alone();
  const Introduction self = introduce(environment, options);
  Meeting meeting = self.rank == 0 ? host_rendezvous(environment, options, self)
                                   : attend_rendezvous(environment, options, self);
  std::unique_ptr<Job> job(new Job);
  job->rank_ = self.rank;
  job->members_ = members_of(meeting.members);
  job->token_ = meeting.token;
  job->master_ = meeting.master;
  const int64_t cpus = take_cpus(meeting.members, self.rank);
  job->has_own_cpu_ = cpus > 0;
  job->threads_ = std::max<int64_t>(1, cpus);
  job->monitor_ = std::make_unique<Monitor>(std::move(meeting), self.rank, job->lost_);
  monitor_of_process = job->monitor_.get();
  set_exit_hook(tell_others);
  return job;
}

std::vector<std::string> Job::all_gather(std::string_view data) {
  if (!monitor_) return {std::string(data)};
  return monitor_->collect(Collective::kAllGather, data);
}

std::string Job::broadcast(std::string_view from_rank_0) {
  if (!monitor_) return std::string(from_rank_0);
  const std::string_view piece = rank_ == 0 ? from_rank_0 : std::string_view();
  return monitor_->collect(Collective::kBroadcast, piece).front();
}

void Job::barrier() {
  if (monitor_) monitor_->collect(Collective::kBarrier, {});
}

void Job::exit_lost() {
  if (monitor_) monitor_->exit_lost();
  _exit(kExitLost);
}

void Job::enter(int64_t step, const char* entry, int64_t micro_batch) {
  if (monitor_) monitor_->activity().set(step, entry, micro_batch);
}

void Job::expect_step(double seconds) {
  if (monitor_) monitor_->expect_step(seconds);
}

void Job::begin_device() {
  if (monitor_) monitor_->activity().turn();
}

void Job::end_device() {
  if (monitor_) monitor_->activity().turn();
}

bool Job::may_begin_step(int64_t step) {
  if (!monitor_) return !stop_requested();
  if (!monitor_->may_begin_step(step)) return false;
  enter(step, nullptr, 0);
  return true;
}

int Job::leave(int exit_code) { return monitor_ ? monitor_->leave(exit_code) : exit_code; }

}  // namespace sgtc::runtime
