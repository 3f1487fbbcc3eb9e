#include "plan/verify.h"

#include "plan/verify_parts.h"

namespace sgtc {

ResolvedPlan::ResolvedPlan(const plan::Plan& source) : plan(source) {
  for (const plan::Kernel& kernel : plan.kernels) kernels.emplace(kernel.symbol, &kernel);
  for (const plan::Communicator& communicator : plan.communicators) {
    communicators.emplace(communicator.name, &communicator);
  }
  for (const plan::Axis& axis : plan.mesh) axes.emplace(axis.name, axis.size);
  for (const plan::Position& position : plan.positions) {
    ResolvedPosition& resolved = positions.emplace_back();
    for (const plan::Buffer& buffer : position.buffers) {
      resolved.buffers.emplace(buffer.name, &buffer);
    }
    for (const plan::Task& task : position.tasks) resolved.tasks.emplace(task.name, &task);
  }
}

int64_t ResolvedPlan::axis_size(const std::string& name) const {
  const auto axis = axes.find(name);
  return axis == axes.end() ? 1 : axis->second;
}

std::string to_string(const PlanFault& fault) {
  std::string where;
  const auto add = [&](const std::string& part) { where += (where.empty() ? "" : ", ") + part; };
  if (fault.position >= 0) add("position " + std::to_string(fault.position));
  if (fault.entry >= 0) add(fault.schedule + " entry " + std::to_string(fault.entry));
  if (!fault.task.empty()) {
    if (fault.entry >= 0) {
      where += " (" + fault.task + ")";
    } else {
      add("task " + fault.task);
    }
  }
  if (!fault.buffer.empty()) add("buffer " + fault.buffer);
  return (where.empty() ? "plan" : where) + ": " + fault.text;
}

std::vector<PlanFault> verify_plan(const plan::Plan& plan) {
  const ResolvedPlan resolved(plan);
  for (const auto find : {find_schema_faults, find_schedule_faults, find_communication_faults,
                          find_memory_faults, find_launch_faults}) {
    PlanFaults faults = find(resolved);
    if (!faults.empty()) return faults;
  }
  return {};
}

}  // namespace sgtc
