// Runs a job against the clock.
//
// The simulation is of events: between two of them every kernel and every communication that is
// under way goes on at a constant rate. What is under way shares two things.
//
// Units. The cores of a host belong to all its ranks; with more threads than cores each gets an
// equal share, as an operating system deals it out over a while. Those of a GPU belong to one rank;
// communications take theirs first, and a kernel that needs more than are left takes as much
// longer.
//
// Links. Communications of one rank that use the same link at once share its rate.
//
// What is left out: jitter, caches (a profile's kernels were measured with data from memory or the
// last cache), clocks that sink under load, contention in the network between hosts, and messages
// that wait in a buffer longer than the whole message (all but the first piece of a large transfer
// waits for the receiver here).
#pragma once

#include <vector>

#include "cost/hardware.h"
#include "simulate/job.h"
#include "simulate/ranks.h"

namespace sgtc {

/// Seconds from the start of the schedule.
struct Span {
  double begin = 0;
  double end = 0;
  bool operator==(const Span&) const = default;
};

struct Run {
  double seconds = 0;
  std::vector<Span> issues;     // from when it may begin until it is done
  std::vector<Span> exchanges;  // from when its ends are there until the bytes are
};

/// Runs everything. The job is one of a verified plan: an InternalError if it waits for ever.
Run run_job(const SimulatedJob& job, const Hardware& hardware, const RankLayout& layout);

}  // namespace sgtc
