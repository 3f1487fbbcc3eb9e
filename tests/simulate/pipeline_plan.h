// Plans of pipelines whose stages all take the same time, for tests.
#pragma once

#include <string>
#include <vector>

#include "cost/hardware.h"
#include "plan/format.h"
#include "schedule/pipeline_order.h"

namespace sgtc {

/// A machine whose unit does one operation a second, and whose links cost nothing unless said.
inline Hardware test_cpu(int64_t units, int64_t ranks_per_host = 0) {
  Hardware hardware;
  hardware.name = "test";
  hardware.units = units;
  hardware.ranks_per_host = ranks_per_host;
  hardware.rates[""] = {1, 1e30, 1e-30};
  hardware.host = {1e30, 1e-30, 0};
  hardware.network = hardware.host;
  hardware.eager_bytes = 1 << 20;
  return hardware;
}

inline Hardware test_gpu(int64_t units) {
  Hardware hardware = test_cpu(units);
  hardware.device = "gpu";
  hardware.eager_bytes = 0;
  return hardware;
}

inline plan::Task compute_task(const std::string& name, const std::string& kernel, int64_t stage) {
  plan::Task task;
  task.name = name;
  task.kind = "compute";
  task.stage = stage;
  task.calls = {{kernel, {{"x", {}, 0}}, {}}};
  return task;
}

inline plan::Task communication_task(const std::string& name, const std::string& kind,
                                     const std::string& communicator, int64_t peer) {
  plan::Task task;
  task.name = name;
  task.kind = kind;
  task.communicator = communicator;
  task.peer = peer;
  if (kind != "receive") task.inputs = {{"x", {}, 0}};
  if (kind != "send") task.outputs = {{"x", {}, 0}};
  return task;
}

/// Entries of one position as they are added.
class EntryList {
 public:
  int64_t add(const std::string& task, int64_t micro_batch, int64_t stream,
              std::vector<int64_t> waits = {}) {
    plan::Entry entry;
    entry.task = task;
    entry.micro_batch = micro_batch;
    entry.stream = stream;
    entry.waits = std::move(waits);
    entries_.push_back(std::move(entry));
    return static_cast<int64_t>(entries_.size()) - 1;
  }
  std::vector<plan::Entry> take() { return std::move(entries_); }

 private:
  std::vector<plan::Entry> entries_;
};

/// A plan with the kernels "forward" (`forward` operations) and "backward" (twice as many), one
/// buffer of 8 bytes and nothing that runs.
inline plan::Plan empty_plan(int64_t positions, int64_t replicas, int64_t micro_batches,
                             int64_t forward, int64_t blocks = 1) {
  plan::Plan plan;
  plan.mesh = {{"pp", positions}, {"dp", replicas}, {"tp", 1}};
  plan.micro_batches = micro_batches;
  plan.communicators = {{"pp.forward", "pp", 0}, {"pp.backward", "pp", 0}, {"dp.grad", "dp", 0}};
  plan::Kernel kernel;
  kernel.kind = "loop";
  kernel.blocks = blocks;
  kernel.access = {"update"};
  kernel.symbol = "forward";
  kernel.flops = forward;
  plan.kernels.push_back(kernel);
  kernel.symbol = "backward";
  kernel.flops = 2 * forward;
  plan.kernels.push_back(kernel);
  for (int64_t p = 0; p < positions; ++p) {
    plan::Position position;
    position.stages = {p};
    position.arena_bytes = 64;
    position.buffers = {{"x", "step", "f32", {2}, 8, 0, 0, 1}};
    position.tasks = {compute_task("forward", "forward", p),
                      compute_task("backward", "backward", p)};
    plan.positions.push_back(std::move(position));
  }
  return plan;
}

/// A step of equal stages without an update. Transfers forward and backward have a stream each.
inline plan::Plan pipeline_plan(PipelineSchedule schedule, int64_t stages, int64_t micro_batches,
                                int64_t replicas = 1, int64_t forward = 100) {
  plan::Plan plan = empty_plan(stages, replicas, micro_batches, forward);
  for (int64_t p = 0; p < stages; ++p) {
    plan::Position& position = plan.positions[static_cast<size_t>(p)];
    const bool first = p == 0;
    const bool last = p + 1 == stages;
    if (!first) {
      position.tasks.push_back(communication_task("receive_x", "receive", "pp.forward", p - 1));
      position.tasks.push_back(communication_task("send_dx", "send", "pp.backward", p - 1));
    }
    if (!last) {
      position.tasks.push_back(communication_task("send_y", "send", "pp.forward", p + 1));
      position.tasks.push_back(communication_task("receive_dy", "receive", "pp.backward", p + 1));
    }
    EntryList list;
    for (const PipelineStep& step : pipeline_order(schedule, stages, p, micro_batches)) {
      const bool is_forward = step.phase == Phase::kForward;
      const int64_t m = step.micro_batch;
      std::vector<int64_t> waits;
      if (is_forward && !first) waits = {list.add("receive_x", m, 1)};
      if (!is_forward && !last) waits = {list.add("receive_dy", m, 2)};
      const int64_t computed = list.add(is_forward ? "forward" : "backward", m, 0, waits);
      if (is_forward && !last) list.add("send_y", m, 1, {computed});
      if (!is_forward && !first) list.add("send_dx", m, 2, {computed});
    }
    position.schedules["train"] = list.take();
  }
  return plan;
}

}  // namespace sgtc
