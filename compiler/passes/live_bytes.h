#pragma once

#include <cstdint>
#include <vector>

#include "passes/kernel.h"

namespace sgtc {

/// The most bytes that results of `groups`, which run in this order, take at one time, for
/// comparing two ways to compute a step before either is scheduled. A result lives from its group
/// to the last one that reads it, outputs live to the end; views, accumulated states, parts of a
/// tensor and new values of states take nothing, and a result takes over an operand of as many
/// bytes that nobody reads later. States and feeds do not count, nor are there several
/// micro-batches in flight.
int64_t peak_of_results(const Graph& graph, const std::vector<Group>& groups);

/// The bytes of all states.
int64_t bytes_of_states(const Graph& graph);

}  // namespace sgtc
