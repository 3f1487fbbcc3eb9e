// What the kernels of a program take on a machine.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/hardware.h"
#include "passes/kernelized_graph.h"

namespace sgtc {

/// Predicted seconds of one call of each group's kernel on a rank with so many units of the
/// hardware; 0 for groups without code.
std::vector<double> group_seconds(const KernelizedGraph& program, const Hardware& hardware,
                                  int64_t units);

}  // namespace sgtc
