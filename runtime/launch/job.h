// The control plane of a running job: how its ranks find each other, agree, and notice a loss.
//
// Every rank has one Job. `join` connects all ranks in a star to rank 0 (rendezvous.h) and starts a
// monitor thread (monitor.h) that alone reads and writes these connections: heartbeats, small
// collectives of host data, news of lost ranks, the agreement to stop. Tensors take other ways.
//
// Losing a rank. A rank that dies is noticed by its closed connection, one that is stopped or cut
// off by missing heartbeats; rank 0 tells all. From then on `lost()` is true: whoever waits for a
// peer polls it and calls `exit_lost()`. A rank that does neither, because it computes or waits in
// foreign code, is ended by its monitor two seconds later. Exit code of survivors: 200. Ranks that
// all wait for each other (stall.h) end in the same way.
//
// Stopping. A signal to any rank must stop all ranks before the same step, or those behind would
// wait for ever for peers that have gone. The rank that got it tells rank 0, which asks all ranks
// (PREPARE). Each answers with the step that it is in and from then on begins no later one; rank 0
// decides the highest answer (DECIDE), and all stop when they have finished that step. This cannot
// deadlock: answers come from monitor threads, which wait for nobody, so the decision comes however
// the ranks wait for each other. A rank that is held holds no step at or below the decision: it
// either was in that step already or is let into it. And a rank that waits in step s for a held
// peer has itself answered at least s, so the decision is at least s and the peer is let in. What
// ranks do together between two steps lies, on all of them, before the question for the later step.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/environment.h"
#include "launch/job_options.h"

namespace sgtc::runtime {

/// One rank, as all ranks know it.
struct Member {
  int64_t rank = 0;
  std::string host;
  int64_t node = 0;  // ranks of equal node share a machine and its shared memory; from 0, in order
  int64_t local_rank = 0;  // among the ranks of its node
  int64_t local_size = 1;
  int64_t pid = 0;
};

class Monitor;

class Job {
 public:
  /// A job of one rank: everything is trivial.
  static std::unique_ptr<Job> alone();
  /// Joins the job: connects, proves and checks the shared secret, compares fingerprints and
  /// options, learns all members and starts the monitor. Dies with a message that all ranks print
  /// if they do not fit together. A job of one rank is `alone`.
  static std::unique_ptr<Job> join(const LaunchEnvironment& environment, const JobOptions& options);

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  /// All ranks, in rank order.
  const std::vector<Member>& members() const { return members_; }
  const Member& self() const { return members_[static_cast<size_t>(rank_)]; }
  /// Random, equal on all ranks: names what the job shares, such as shared memory. 32 hexadecimal
  /// digits.
  const std::string& token() const { return token_; }
  /// Where rank 0 listened, HOST:PORT; empty if alone.
  const std::string& master() const { return master_; }
  /// Threads that this rank should use where the user gives no number: its share of the CPUs, at
  /// least 1. `join` has bound the process to these CPUs if every rank has one of its own.
  int64_t threads() const { return threads_; }
  /// False if this rank was given CPUs that are fewer than the ranks that were given them.
  bool has_own_cpu() const { return has_own_cpu_; }

  /// Small host-side data of all ranks, in rank order. These three are collectives: all ranks call
  /// the same ones in the same order, each from one thread. They end in `exit_lost` after a loss.
  std::vector<std::string> all_gather(std::string_view data);
  std::string broadcast(std::string_view from_rank_0);
  void barrier();

  /// Set as soon as a peer is known to be lost. Every wait for a peer polls it.
  const std::atomic<bool>& lost() const { return lost_; }
  /// Prints which rank was lost (host, process, last known activity) and in which entry this rank
  /// is, and exits with 200. Any thread, also several at once: one line is printed.
  [[noreturn]] void exit_lost();

  /// Notes what this rank does, for messages about it. Lock-free and cheap: call it for each
  /// communication entry. `entry` must live as long as the job and may be null: computing.
  void enter(int64_t step, const char* entry, int64_t micro_batch);

  /// What the plan predicts for a step.
  void expect_step(double seconds);
  /// From `begin` to `end` this rank does nothing but run its device or wait for it: a job whose
  /// ranks are all like that must get on (stall.h). Not nested.
  void begin_device();
  void end_device();

  /// Asks before step `step`; steps ascend and all ranks ask for the same ones. False: a signal
  /// came to some rank and all ranks stop before this step. One atomic load unless a stop is being
  /// agreed on.
  bool may_begin_step(int64_t step);

  /// The end of this rank. With 0 or kExitSignal it waits until all ranks have come here and
  /// returns the highest of their codes; any other code is told to the others at once, as a loss,
  /// and returned. `die` does the latter by itself. Nothing of the job may be used afterwards.
  int leave(int exit_code);

 private:
  Job();

  int64_t rank_ = 0;
  std::vector<Member> members_;
  std::string token_;
  std::string master_;
  int64_t threads_ = 1;
  bool has_own_cpu_ = true;
  std::atomic<bool> lost_{false};
  std::unique_ptr<Monitor> monitor_;  // null: alone
};

}  // namespace sgtc::runtime
