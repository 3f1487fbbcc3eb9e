// The recomputation problem of a placed program.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/placement.h"
#include "passes/kernelized_graph.h"
#include "recompute/recompute_problem.h"

namespace sgtc {

/// What the nodes of a program cost when they run again.
struct RerunCosts {
  std::vector<double> group_seconds;  // of one call of each group's kernel
  double flops_per_second = 0;        // shares the time of a group among its nodes
  double bytes_per_second = 0;
};

/// A problem and the graph's nodes that it is about.
struct PositionProblem {
  RecomputeProblem problem;
  std::vector<NodeId> nodes;  // of each node of the problem
};

/// What `position` may compute again. Times are the groups that it runs, in order. A problem's
/// nodes are the forward nodes that run there alone; reshapes belong to the values that they show.
/// Never run again: collectives, sums over micro-batches and indexing, whose indices are checked
/// once. Results of the step, what other positions or the update phase read, and what comes from
/// other positions are kept anyway. Parameters, feeds, constants and results of the prologue are
/// there anyway. Bytes that kernels need beside their tensors are not counted.
PositionProblem find_problem(const KernelizedGraph& program, const Placement& placement,
                             int64_t position, int64_t slots, const RerunCosts& costs);

}  // namespace sgtc
