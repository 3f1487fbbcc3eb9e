#include "launch/launch.h"

#include <unistd.h>

#include <algorithm>

#include "failure.h"

namespace sgtc::runtime {
namespace {

// All ranks on this machine.
LaunchEnvironment start_here(int64_t ranks) {
  LaunchEnvironment environment;
  environment.size = ranks;
  environment.starts = ranks > 1 ? ranks : 0;
  environment.one_host = true;
  environment.job = "parent-" + std::to_string(getpid());
  return environment;
}

Variables variables_and_options(const Options& options) {
  Variables variables = process_variables();
  if (options.rank >= 0) variables["SGTC_RANK"] = std::to_string(options.rank);
  if (options.world_size > 0) variables["SGTC_WORLD_SIZE"] = std::to_string(options.world_size);
  if (!options.master.empty()) variables["SGTC_MASTER"] = options.master;
  return variables;
}

void check_size(const LaunchEnvironment& environment, const std::vector<int64_t>& plan_sizes,
                const std::string& compiled_for) {
  if (std::count(plan_sizes.begin(), plan_sizes.end(), environment.size) > 0) return;
  const std::string source = environment.launcher.empty() ? "" : " by " + environment.launcher;
  die("number of ranks",
      "the program was compiled for " + compiled_for + ", started" + source + " with " +
          std::to_string(environment.size),
      "start that many, or compile it with another --mesh");
}

}  // namespace

LaunchEnvironment find_launch(const Options& options, const std::vector<int64_t>& plan_sizes,
                              const std::string& compiled_for) {
  const Variables variables = variables_and_options(options);
  LaunchEnvironment environment;
  if (options.ranks > 0 && !variables.count("SGTC_RANK")) {
    environment = start_here(options.ranks);
  } else {
    require(read_launch_environment(variables, getppid(), plan_sizes.front(), environment));
    if (environment.launcher.empty()) {
      if (environment.outside_step && plan_sizes.front() > 1) {
        die("Slurm", "this is a job of several tasks, but not started by srun",
            "start the program with srun, or all ranks on this host with --nproc");
      }
      environment = start_here(plan_sizes.front());
    }
  }
  check_size(environment, plan_sizes, compiled_for);
  return environment;
}

}  // namespace sgtc::runtime
