#include "cpu_device.h"

#include <algorithm>
#include <cstring>

namespace sgtc::runtime {
namespace {

PreparedSchedule prepare(const DeviceRequest& request, const char* name) {
  return prepare_schedule(request.plan, request.coordinates, name, request.program, request.memory,
                          request.communicators);
}

}  // namespace

CpuDevice::CpuDevice(const DeviceRequest& request)
    : arena_(request.arena),
      threads_(request.threads),
      train_(prepare(request, "train")),
      evaluate_(prepare(request, "evaluate")),
      executor_(threads_, request.communicators),
      cleared_(cleared_ranges(request.memory, request.states)),
      total_memory_(runtime::total_memory()) {
  if (request.poison) request.arena.poison();
}

void CpuDevice::start(ScheduleKind kind, int64_t step) {
  for (const MemoryRange& range : cleared_) {
    std::memset(range.data, 0, static_cast<size_t>(range.bytes));
  }
  const bool trains = kind == ScheduleKind::train;
  executor_.run(trains ? train_ : evaluate_, step, trains ? trace_ : nullptr);
}

int64_t CpuDevice::memory_used() const { return std::max(arena_.bytes(), peak_resident_bytes()); }

int64_t CpuDevice::memory_total() const { return total_memory_; }

}  // namespace sgtc::runtime
