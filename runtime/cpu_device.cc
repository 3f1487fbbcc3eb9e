#include "cpu_device.h"

#include <algorithm>
#include <cstring>

#include "failure.h"

namespace sgtc::runtime {
namespace {

PreparedSchedule prepare(const DeviceRequest& request, const char* name) {
  return prepare_schedule(request.plan, request.coordinates, name, request.program, request.memory,
                          request.communicators);
}

std::optional<AccessCheck> access_check(const DeviceRequest& request, const HostMemory& memory) {
  if (!request.check_accesses) return std::nullopt;
  if (request.communicators) {
    die("SGTC_CHECK_ACCESSES", "a rank with peers also communicates while kernels run",
        "compile with --mesh 1x1");
  }
  const auto position = static_cast<size_t>(request.coordinates.pp);
  return std::optional<AccessCheck>(std::in_place, memory, request.arena,
                                    request.plan.positions[position]);
}

}  // namespace

void HostMemory::read(unsigned char* to) const {
  std::memcpy(to, arena_.data(), static_cast<size_t>(arena_.bytes()));
}

void HostMemory::write(const unsigned char* from) const {
  std::memcpy(arena_.data(), from, static_cast<size_t>(arena_.bytes()));
}

CpuDevice::CpuDevice(const DeviceRequest& request)
    : arena_(request.arena),
      memory_(request.arena),
      threads_(request.threads),
      check_(access_check(request, memory_)),
      train_(prepare(request, "train")),
      evaluate_(prepare(request, "evaluate")),
      executor_(threads_, request.communicators, check_ ? &*check_ : nullptr),
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
