// The parts of verify_plan and what they share: a plan with its names resolved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/verify.h"

namespace sgtc {

/// Names of one position.
struct ResolvedPosition {
  std::map<std::string, const plan::Buffer*> buffers;
  std::map<std::string, const plan::Task*> tasks;
};

/// Lookup by name. Duplicate names keep the first.
struct ResolvedPlan {
  explicit ResolvedPlan(const plan::Plan& plan);

  const plan::Plan& plan;
  std::map<std::string, const plan::Kernel*> kernels;
  std::map<std::string, const plan::Communicator*> communicators;
  std::map<std::string, int64_t> axes;  // sizes
  std::vector<ResolvedPosition> positions;

  int64_t axis_size(const std::string& name) const;
};

using PlanFaults = std::vector<PlanFault>;

inline bool is_communication(const plan::Task& task) { return task.kind != "compute"; }
inline bool is_transfer(const plan::Task& task) {
  return task.kind == "send" || task.kind == "receive";
}

/// Bytes of an argument once its buffer is known.
inline int64_t bytes_of(const plan::Argument& argument, const plan::Buffer& buffer) {
  return argument.bytes == 0 ? buffer.bytes : argument.bytes;
}

/// Group 1 of verify_plan.
PlanFaults find_schema_faults(const ResolvedPlan& plan);
/// Group 2; group 1 holds.
PlanFaults find_schedule_faults(const ResolvedPlan& plan);
/// Group 3; groups 1 and 2 hold.
PlanFaults find_communication_faults(const ResolvedPlan& plan);
/// Group 4; groups 1 to 3 hold.
PlanFaults find_memory_faults(const ResolvedPlan& plan);
/// Group 5; group 1 holds.
PlanFaults find_launch_faults(const ResolvedPlan& plan);

}  // namespace sgtc
