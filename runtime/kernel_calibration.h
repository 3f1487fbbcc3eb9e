// Kernels of a program, measured one by one.
#pragma once

#include <vector>

#include "measurements.h"
#include "program.h"
#include "session.h"
#include "thread_pool.h"

namespace sgtc::runtime {

/// Measures each kernel that the rank's schedule "train" calls: the mean over rounds in which each
/// runs once, in the order of the schedule, on the arguments of its calls in turn, with the caches
/// of the threads' cores swept before each. `crowded`: other ranks run on the CPU of the one thread
/// meanwhile, whose time does not count. Takes some seconds. Dies if the program lacks one.
std::vector<MeasuredKernel> measure_kernels(const Program& program, const Session& session,
                                            ThreadPool& threads, bool crowded);

}  // namespace sgtc::runtime
