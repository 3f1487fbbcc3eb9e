// Measures a program's kernels and communications alone, for `sgtc --hardware`.
//
// Never a whole step: a kernel is called over and over, a communication is issued over and over,
// and what a step of them takes is left to the compiler's simulation. A GPU measures in graphs of
// equal nodes that follow each other, long enough for its clocks to settle. On a CPU, so that this
// adds up:
//
// - Before a call, the second-level cache of each thread's core is swept: in a step the tensors of
//   a kernel were written by others, most of them too long ago to be there.
// - As many ranks of a host measure at the same time as its cores can run, because they share
//   memory; others wait. Communications are measured one at a time.
// - Communications are issued through the executor, so that they include what the two threads of a
//   rank cost each other.
//
// docs/hardware-profiles.md describes the file.
#pragma once

#include <string>
#include <vector>

#include "communication/rank_communicators.h"
#include "launch/job.h"
#include "program.h"
#include "session.h"

namespace sgtc::runtime {

/// Measures the kernels of the plan's schedule "train" and its communications and writes the
/// profile to `path`, from rank 0. A collective of all ranks, after a step that has filled all
/// buffers; states and results are changed at will. `cpus` are those that this rank was given,
/// `threads` compute.
void calibrate(const Program& program, Job& job, Session& session, RankCommunicators* communicators,
               const std::vector<int>& cpus, int64_t threads, const std::string& path);

}  // namespace sgtc::runtime
