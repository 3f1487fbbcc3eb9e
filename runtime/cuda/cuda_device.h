// A GPU of NVIDIA as the device of one rank. Those of a job are connected by NCCL.
//
// Everything is prepared once: device memory, kernels, and a graph per schedule. A step then is a
// copy of its inputs, the launch of a graph and a copy of its results, none of which the host waits
// for: it reads the results of a step when it has started the next one. So the device always has
// work, and a bad index or a loss that is not finite is known at most one step late.
#pragma once

#include <optional>

#include "cuda/argument_tables.h"
#include "cuda/communicators.h"
#include "cuda/device_arena.h"
#include "cuda/device_schedule.h"
#include "cuda/driver.h"
#include "cuda/gpu.h"
#include "cuda/inputs.h"
#include "cuda/kernels.h"
#include "cuda/nccl.h"
#include "cuda/results.h"
#include "cuda/tensor_maps.h"
#include "device.h"

namespace sgtc::runtime::cuda {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const DeviceRequest& request);

  int64_t steps_ahead() const override { return kMaxStepsAhead; }
  void await_inputs() override { inputs_.await(); }
  void start(ScheduleKind kind, int64_t step) override;
  void finish() override { results_.read(); }
  const unsigned char* observe(MemoryRange range) override { return results_.observe(range); }
  void upload(MemoryRange range) override { arena_.upload(range); }
  void download(MemoryRange range) override { arena_.download(range); }
  void set_trace(Trace* trace) override;
  std::optional<Measurements> measure() override;
  int64_t memory_used() const override { return memory_used_; }
  int64_t memory_total() const override { return memory_total_; }
  Touched touched() const override { return arena_.touched(); }
  ThreadPool& threads() override { return threads_; }
  std::string description() const override;

 private:
  Driver driver_;
  const Gpu gpu_;
  const std::optional<Nccl> nccl_;  // none for a rank without peers
  const int64_t free_at_start_;
  const Stream stream_;
  DeviceArena arena_;
  std::optional<AccessCheck> check_;
  std::optional<Communicators> communicators_;
  const int64_t free_when_connected_;
  Kernels kernels_;
  const TensorMaps maps_;
  const ArgumentTables tables_;
  const Inputs inputs_;
  Results results_;
  DeviceSchedule train_;
  const DeviceSchedule evaluate_;
  Trace* trace_ = nullptr;
  int64_t memory_used_ = 0;  // nothing is allocated after the start
  int64_t memory_total_ = 0;
  int64_t taken_ = 0;  // of it, since there is a context
  ThreadPool threads_;
};

}  // namespace sgtc::runtime::cuda
