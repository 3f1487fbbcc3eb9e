// Where the groups of a program run in the pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/kernelized_graph.h"

namespace sgtc {

/// Positions of the pipeline, ascending.
using Positions = std::vector<int64_t>;

struct Placement {
  int64_t stages = 1;
  std::vector<Positions> groups;  // of each group, at least one
  std::vector<Positions> states;  // of each value that is a state: who holds it; else empty

  bool runs(size_t group, int64_t position) const;
  bool holds(ValueId state, int64_t position) const;
};

/// Whether `list` has `position`.
bool contains(const Positions& list, int64_t position);
/// Adds the positions of `more` to `list`.
void unite(Positions& list, const Positions& more);

/// Everything on position 0.
Placement place_on_one(const KernelizedGraph& program);

/// Completes a placement whose forward and backward groups are placed (those of length one or more;
/// setup, prologue and update groups are empty):
/// - A state is held wherever forward or backward groups read it; several positions then hold
///   copies of one parameter and update each of them alike.
/// - A setup or prologue group runs wherever its results are read.
/// - A collective runs where its operand is computed, one that gathers shards of a state where that
///   is held.
/// - An update group of scalars alone (norm, learning rate, finiteness) runs wherever its results
///   are needed: a scalar costs less to compute again than to send late. Any other runs where the
///   states are that it updates, or, if it only reduces, on one position that has its input.
/// - Values that are outputs of the update phase are needed on every position.
void place_update(const KernelizedGraph& program, Placement& placement);

}  // namespace sgtc
