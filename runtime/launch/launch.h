// What this process has to do in its job.
#pragma once

#include <cstdint>
#include <vector>

#include "launch/environment.h"
#include "options.h"

namespace sgtc::runtime {

/// What the launcher's variables and, over them, --nproc, --rank, --world-size and --master say.
/// `plan_sizes` are the numbers of ranks that the program was compiled for; the first one is
/// started where nothing else is said. Dies if the variables cannot be right, or in a Slurm batch
/// script without srun.
LaunchEnvironment find_launch(const Options& options, const std::vector<int64_t>& plan_sizes);

}  // namespace sgtc::runtime
