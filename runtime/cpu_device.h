// The CPU: kernels work in the host's arena, and a step is done when `start` returns.
#pragma once

#include <optional>

#include "access_check.h"
#include "device.h"
#include "executor.h"
#include "prepared_schedule.h"
#include "thread_pool.h"

namespace sgtc::runtime {

/// The host's arena, where it is.
class HostMemory final : public CheckedMemory {
 public:
  explicit HostMemory(const Arena& arena) : arena_(arena) {}
  void read(unsigned char* to) const override;
  void write(const unsigned char* from) const override;

 private:
  const Arena& arena_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceRequest& request);

  int64_t steps_ahead() const override { return 0; }
  void await_inputs() override {}
  void start(ScheduleKind kind, int64_t step) override;
  void finish() override {}
  const unsigned char* observe(MemoryRange range) override { return range.data; }
  void upload(MemoryRange) override {}
  void download(MemoryRange) override {}
  void set_trace(Trace* trace) override { trace_ = trace; }
  int64_t memory_used() const override;
  int64_t memory_total() const override;
  Touched touched() const override { return arena_.touched(); }
  ThreadPool& threads() override { return threads_; }
  std::string description() const override { return {}; }

 private:
  const Arena& arena_;
  const HostMemory memory_;
  ThreadPool threads_;
  std::optional<AccessCheck> check_;
  PreparedSchedule train_;
  PreparedSchedule evaluate_;
  Executor executor_;
  std::vector<MemoryRange> cleared_;  // before each step
  Trace* trace_ = nullptr;
  int64_t total_memory_ = 0;
};

}  // namespace sgtc::runtime
