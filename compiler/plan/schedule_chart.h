// The order of a schedule at a glance.
#pragma once

#include <string>
#include <vector>

#include "plan/format.h"

namespace sgtc {

/// One row per stream and a column per entry: F, B, I, W, U, P, E for forward, backward, backward
/// of inputs, backward of weights, update, prologue and evaluation, other tasks by name; with the
/// stage when the position owns several, and the micro-batch: "F0" or "F2.0". Communications are
/// ">" (send), "<" (receive) or "+" (collective) and the name's end.
std::string schedule_chart(const plan::Position& position, const std::vector<plan::Entry>& entries);

}  // namespace sgtc
