// Kernels of a program, measured one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"
#include "session.h"
#include "thread_pool.h"

namespace sgtc::runtime {

struct MeasuredKernel {
  const plan::Kernel* kernel = nullptr;
  double seconds = 0;  // of one call, the median
};

/// Measures each kernel that the rank's schedule "train" calls, on the arguments of its first
/// calls, with the caches of the threads' cores swept before each call. Dies if the program lacks
/// one.
std::vector<MeasuredKernel> measure_kernels(const Program& program, const Session& session,
                                            ThreadPool& threads);

/// The middle value; `values` is not empty.
double median(std::vector<double> values);

}  // namespace sgtc::runtime
