// What the backward phase of one pipeline position needs of its forward phase, as numbers.
//
// The forward phase is a program of nodes. Some of its values are read in the backward phase. Each
// of those is either *kept* until then, or *computed again* there from values that are kept or
// computed again themselves. A choice is the set of nodes that run again; everything else follows:
// what they and the backward phase read and no chosen node makes is kept.
//
// A node runs again directly before the first reader of its results, so a value that is computed
// again is live from there to its last reader.
#pragma once

#include <cstdint>
#include <vector>

namespace sgtc {

struct RecomputeProblem {
  /// A value that a node of the problem makes. Times count what a position runs, in order.
  struct Value {
    int64_t bytes = 0;
    int32_t node = -1;            // that makes it
    int64_t made = 0;             // time
    int64_t last_forward = 0;     // last read of the forward phase, or `made`
    int64_t first_backward = -1;  // first and last read of the backward phase; -1: none
    int64_t last_backward = -1;
    /// Whether memory holds it if it is not kept: some are only ever in registers.
    bool stored = true;
  };

  struct Operand {
    int32_t value = -1;
    /// What reading it costs if its node does not run again: in the forward phase both were one
    /// kernel, and the value was in registers.
    double seconds = 0;
  };

  struct Node {
    bool may_rerun = true;
    double seconds = 0;             // of running it again
    std::vector<Operand> operands;  // without what is there anyway, such as parameters
    std::vector<int32_t> results;   // without what is there anyway
  };

  std::vector<Node> nodes;  // in execution order
  std::vector<Value> values;
  /// Bytes at each time of everything else.
  std::vector<int64_t> other_bytes;
  /// Micro-batches whose kept values are live at once, up to the end of the backward phase.
  int64_t slots = 1;
  int64_t backward_end = 0;  // time
};

/// Per node: whether it runs again.
using RecomputeChoice = std::vector<bool>;

struct RecomputeCost {
  double seconds = 0;      // of what runs again
  int64_t peak_bytes = 0;  // of all times
  int64_t peak_time = 0;
};

/// The price of a choice. Chosen nodes whose results nobody needs do not run.
RecomputeCost evaluate(const RecomputeProblem& problem, const RecomputeChoice& choice);

/// `choice` without the nodes whose results nobody needs.
RecomputeChoice needed_nodes(const RecomputeProblem& problem, const RecomputeChoice& choice);

}  // namespace sgtc
