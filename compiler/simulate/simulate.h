// What a plan will do on a machine, without one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/hardware.h"
#include "plan/format.h"
#include "simulate/engine.h"

namespace sgtc {

/// An entry of a schedule: a communication from when its bytes begin to move.
struct SimulatedEntry {
  Span span;
  double posted = 0;       // when the rank came to it
  int64_t live_bytes = 0;  // the most while it runs, by live_buffers.h
};

/// One rank of a position: its first. The sum of computing, exposed and idle time is the step.
struct SimulatedPosition {
  std::vector<SimulatedEntry> entries;  // of the schedule, in list order
  double computing = 0;                 // seconds in which a kernel runs
  double communicating = 0;             // seconds in which bytes of it move
  double exposed = 0;                   // of `communicating`, without a kernel
  double idle = 0;                      // seconds without either
  int64_t peak_live_bytes = 0;

  /// |communicating ∩ computing| / max of both; 0 if nothing is communicated.
  double overlap_ratio() const;
};

/// What goes over a link in one run of the schedule, from one rank. Collectives: `to` is -1.
struct SimulatedLink {
  std::string communicator;
  int64_t from = 0;  // positions
  int64_t to = -1;
  int64_t messages = 0;
  double host_bytes = 0;     // to ranks of the same host
  double network_bytes = 0;  // to others
  double seconds = 0;        // with the link to itself
};

struct Simulation {
  std::string schedule;
  double seconds = 0;  // from first to last
  /// Part of the positions' time in which they neither compute nor communicate.
  double bubble = 0;
  /// Of all positions together, as of one.
  double overlap_ratio = 0;
  int64_t ranks = 0;
  int64_t simulated_ranks = 0;
  std::vector<SimulatedPosition> positions;
  std::vector<SimulatedLink> links;  // by communicator, from, to
};

/// Simulates one run of `schedule` ("train" or "evaluate"); nothing if the plan has none of that
/// name. The plan has to be one that verify_plan accepts.
Simulation simulate(const plan::Plan& plan, const Hardware& hardware,
                    const std::string& schedule = "train");

}  // namespace sgtc
