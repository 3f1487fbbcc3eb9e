// What this process has to do in its job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/environment.h"
#include "options.h"

namespace sgtc::runtime {

/// What the launcher's variables and, over them, --nproc, --rank, --world-size and --master say.
/// `plan_sizes` are the numbers of ranks that the program was compiled for; the first one is
/// started where nothing else is said; `compiled_for` tells of them in messages. Dies if the
/// variables cannot be right, if no plan is for the number of ranks, or in a Slurm batch script
/// without srun.
LaunchEnvironment find_launch(const Options& options, const std::vector<int64_t>& plan_sizes,
                              const std::string& compiled_for);

}  // namespace sgtc::runtime
