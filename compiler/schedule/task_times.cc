#include "schedule/task_times.h"

#include <algorithm>

#include "cost/communication_time.h"

namespace sgtc {
namespace {

bool is_transfer(const StepCall& call) {
  return call.kind == StepCall::Kind::kSend || call.kind == StepCall::Kind::kReceive;
}

// As communication_seconds knows it.
const char* kind_of(const StepCall& call) {
  if (is_transfer(call)) return "send";
  if (call.kind == StepCall::Kind::kAllReduce) return "all_reduce";
  return call.kind == StepCall::Kind::kReduceScatter ? "reduce_scatter" : "all_gather";
}

// Of everything that is sent, or of the whole tensor of a collective: operand or result.
int64_t bytes_of(const StepCalls& step, const StepCall& call) {
  int64_t sum = 0;
  int64_t most = 0;
  for (const StorageId id : call.arguments) {
    const int64_t bytes = step.storages[static_cast<size_t>(id)].bytes;
    sum += bytes;
    most = std::max(most, bytes);
  }
  return is_transfer(call) ? sum : most;
}

}  // namespace

TaskTimes::TaskTimes(const Hardware& hardware, const Mesh& mesh, int64_t communication_blocks)
    : hardware_(hardware),
      mesh_(mesh),
      communication_blocks_(communication_blocks),
      clock_(hardware, hardware.units_of_rank(mesh.pp * mesh.dp * mesh.tp)) {}

double TaskTimes::seconds(const StepCalls& step, const StepTask& task, const KernelTable& kernels,
                          int64_t position) const {
  if (task.kind == StepCall::Kind::kKernel) {
    double sum = 0;
    for (const size_t c : task.calls) sum += kernel_seconds(step, step.calls[c], kernels);
    return sum;
  }
  const StepCall& first = step.calls[task.calls.front()];
  CommunicationWork work;
  work.kind = kind_of(first);
  work.members = is_transfer(first) ? 2 : mesh_.dp;
  work.hosts = hosts_of(first, position);
  work.blocks = communication_blocks_;
  for (const size_t c : task.calls) work.bytes += bytes_of(step, step.calls[c]);
  return communication_seconds(hardware_, work);
}

double TaskTimes::kernel_seconds(const StepCalls& step, const StepCall& call,
                                 const KernelTable& kernels) const {
  const plan::Kernel& kernel = kernels.kernel(call.kernel->symbol);
  std::vector<std::string> dtypes;
  for (const StorageId id : call.arguments) {
    dtypes.emplace_back(name_of(step.storages[static_cast<size_t>(id)].type.dtype));
  }
  return clock_
      .time({kernel.symbol, kernel.kind, rated_dtype(dtypes), kernel.flops, kernel.bytes,
             kernel.blocks})
      .seconds;
}

// Ranks are numbered (pp * DP + dp) * TP + tp.
int64_t TaskTimes::hosts_of(const StepCall& call, int64_t position) const {
  const int64_t replicas = mesh_.dp * mesh_.tp;
  const int64_t first = hardware_.host_of_rank(position * replicas);
  if (is_transfer(call)) return first == hardware_.host_of_rank(call.peer * replicas) ? 1 : 2;
  return hardware_.host_of_rank((position + 1) * replicas - 1) - first + 1;
}

}  // namespace sgtc
