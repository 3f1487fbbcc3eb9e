// Proves that a plan can be executed: names and sizes resolve, no rank waits for ever, and every
// read sees the bytes that were meant for it. Works from the plan alone and shares no code with
// what schedules and places; the planner of offsets is checked here too.
//
// Faults are looked for in this order, and a later group only when the earlier ones are sound:
// 1. Names, sizes and counts of every part of the plan; arguments fit their kernels.
// 2. Schedules: entries name tasks, instances exist, waits name earlier entries, groups adjoin.
// 3. Communication: the n-th send meets a receive of the same bytes, dtype and micro-batch;
//    collectives agree on all members; and the graph of all communications is acyclic when each
//    rank issues them in list order and none completes before its other ends are issued. That is
//    stricter than streams need, and so holds for every runtime that issues in list order. Ranks
//    that differ only in dp and tp share one text, so a cycle among ranks exists exactly when one
//    among positions does, and positions are what is checked.
// 4. Memory, byte by byte for the corners of the dp and tp axes: accesses to shared bytes in
//    different streams are ordered by streams and waits; a read finds what was written to this
//    instance in this step and for this micro-batch, and nothing else on top; what a communication
//    brought is read before it is overwritten; persistent buffers and results are whole at the end.
// 5. Launches on a GPU: what the architecture bounds, grids whose blocks wait for each other, and
//    tensor maps, whose tensors lie inside their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/format.h"

namespace sgtc {

/// Where a fault is and what is wrong. Unknown parts are -1 or empty.
struct PlanFault {
  int64_t position = -1;
  std::string schedule;
  int64_t entry = -1;  // index into the schedule
  std::string task;
  std::string buffer;
  std::string text;  // expected and found
};

/// "position 0, train entry 3 (send_h1), buffer h1: …".
std::string to_string(const PlanFault& fault);

/// All faults of the first group that has any; none for a sound plan.
std::vector<PlanFault> verify_plan(const plan::Plan& plan);

}  // namespace sgtc
