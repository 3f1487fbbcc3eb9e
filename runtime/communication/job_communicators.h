// The communicators of a rank of a job: which way each of them takes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gloo_network.h"
#include "launch/job.h"
#include "peers.h"
#include "plan/format.h"
#include "rank_communicators.h"
#include "shared_memory.h"

namespace sgtc::runtime {

/// The job as a watch: its flag, its message, and its record of what a rank does.
class JobWatch : public Watch {
 public:
  explicit JobWatch(Job& job) : job_(job) {}
  bool lost() const override { return job_.lost().load(std::memory_order_relaxed); }
  [[noreturn]] void exit_lost() override { job_.exit_lost(); }
  void enter(int64_t step, const char* entry, int64_t micro_batch) override {
    job_.enter(step, entry, micro_batch);
  }

 private:
  Job& job_;
};

class JobCommunicators {
 public:
  /// Connects the ranks of `job`, of which there are as many as the plan needs: groups of one host
  /// through shared memory, others by Gloo; all by Gloo if rank 0 has SGTC_TRANSPORT=gloo in its
  /// environment. GPUs connect themselves, by what `peers` says. A collective of all ranks. The job
  /// must outlive this. Dies with a remedy if a group cannot be connected.
  JobCommunicators(const plan::Plan& plan, Job& job);

  /// Null for a job of one rank, and for a plan for GPUs.
  RankCommunicators* get() { return communicators_ ? &*communicators_ : nullptr; }
  /// Null for a job of one rank, and for a plan for CPUs.
  const Peers* peers() const { return peers_ ? &*peers_ : nullptr; }

 private:
  void share_memory(const std::vector<RankGroup>& groups, Job& job);

  JobWatch watch_;
  std::optional<Peers> peers_;
  std::optional<SharedMemory> memory_;
  std::optional<GlooNetwork> network_;
  std::optional<RankCommunicators> communicators_;
};

}  // namespace sgtc::runtime
