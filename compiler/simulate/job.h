// One run of a schedule as work that ranks do and exchange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/communication_time.h"
#include "cost/hardware.h"
#include "plan/format.h"
#include "simulate/ranks.h"

namespace sgtc {

/// Kernels in a row that use equally many units, with that many to themselves.
struct Segment {
  double seconds = 0;
  int64_t units = 1;
};

/// What one rank does as one: an entry that computes, or communications that are issued together.
struct Issue {
  size_t rank = 0;                   // index into the layout's ranks
  std::vector<size_t> entries;       // numbers in the schedule
  std::vector<size_t> exchanges;     // one per entry that communicates
  const std::vector<Segment>* work;  // null: it communicates
  std::vector<size_t> next;          // issues of the rank that come after it
  int64_t earlier = 0;               // issues that come before it
};

/// A communication with all its ends. Of replicas that are alike one end stands for all.
struct SimulatedExchange {
  CommunicationWork work;
  double seconds = 0;        // with the links to itself
  bool eager = false;        // begins when the first end, the sender, does
  int64_t units = 0;         // that it takes of every rank
  std::vector<size_t> ends;  // issues; of a transfer the sender first
};

struct SimulatedJob {
  std::vector<std::vector<std::vector<Segment>>> segments;  // per position and task
  std::vector<Issue> issues;
  std::vector<SimulatedExchange> exchanges;
};

/// The work of `schedule` on every rank of the layout, with the order that the runtime keeps. On a
/// CPU a rank computes in one thread and communicates in another, each in list order; on a GPU
/// every stream is an order of its own. Everything also follows earlier entries of its stream and
/// what it waits for. The n-th send on a communicator meets the n-th receive, the n-th collective
/// of a member those of the others. The plan has to be one that verify_plan accepts.
SimulatedJob make_job(const plan::Plan& plan, const Hardware& hardware, const RankLayout& layout,
                      const std::string& schedule);

}  // namespace sgtc
