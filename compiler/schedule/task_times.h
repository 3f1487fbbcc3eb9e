// What the tasks of a position take on a machine, for the order of a step.
#pragma once

#include <cstdint>

#include "cost/hardware.h"
#include "cost/kernel_time.h"
#include "mesh/mesh.h"
#include "schedule/kernel_table.h"
#include "schedule/step_tasks.h"

namespace sgtc {

class TaskTimes {
 public:
  /// `hardware` must outlive this. `communication_blocks`: as in PlanInput.
  TaskTimes(const Hardware& hardware, const Mesh& mesh, int64_t communication_blocks);

  /// Predicted seconds of a task of the position when it has its rank and its links to itself.
  /// `kernels` has all kernels that the task calls.
  double seconds(const StepCalls& step, const StepTask& task, const KernelTable& kernels,
                 int64_t position) const;

 private:
  double kernel_seconds(const StepCalls& step, const StepCall& call,
                        const KernelTable& kernels) const;
  int64_t hosts_of(const StepCall& call, int64_t position) const;

  const Hardware& hardware_;
  const Mesh mesh_;
  const int64_t communication_blocks_;
  const KernelClock clock_;
};

}  // namespace sgtc
