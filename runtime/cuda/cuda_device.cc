#include "cuda/cuda_device.h"

#include <cstdlib>

#include "cuda/launches.h"
#include "cuda/ranges.h"
#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

Stream new_stream(const Driver& driver) {
  Stream stream = nullptr;
  SGTC_CUDA(driver, cuStreamCreate(&stream, kStreamNonBlocking));
  return stream;
}

bool is_stepwise() {
  const char* text = std::getenv("SGTC_STEPWISE");
  return text && std::string(text) == "1";
}

const plan::Position& position_of(const DeviceRequest& request) {
  return request.plan.positions[static_cast<size_t>(request.coordinates.pp)];
}

std::vector<MemoryRange> joined(const DeviceRequest& request, std::vector<MemoryRange> ranges) {
  return join_ranges(std::move(ranges), position_of(request), request.memory);
}

DeviceSchedule schedule(const DeviceRequest& request, const char* name, const Driver& driver,
                        const DeviceArena& arena, Kernels& kernels) {
  return {driver,
          arena,
          kernels,
          list_launches(request.plan, request.coordinates, name, request.memory),
          joined(request, cleared_ranges(request.memory, request.states)),
          is_stepwise()};
}

}  // namespace

CudaDevice::CudaDevice(const DeviceRequest& request)
    : gpu_(choose_gpu(driver_, request.plan.target, request.local_rank, request.local_size)),
      stream_(new_stream(driver_)),
      arena_(driver_, request.arena, stream_),
      kernels_(driver_, request.program),
      inputs_(driver_, arena_,
              joined(request, input_ranges(request.plan, request.coordinates.pp, request.memory))),
      results_(driver_, arena_),
      train_(schedule(request, "train", driver_, arena_, kernels_)),
      evaluate_(schedule(request, "evaluate", driver_, arena_, kernels_)) {
  if (request.poison) arena_.poison();
  size_t free = 0;
  size_t total = 0;
  SGTC_CUDA(driver_, cuMemGetInfo_v2(&free, &total));
  memory_used_ = static_cast<int64_t>(total - free);
  memory_total_ = static_cast<int64_t>(total);
}

void CudaDevice::start(ScheduleKind kind, int64_t step) {
  inputs_.send(stream_);
  (kind == ScheduleKind::train ? train_ : evaluate_).run(stream_, step);
  results_.collect(stream_);
}

void CudaDevice::set_trace(Trace* trace) {
  if (trace) {
    die("--trace", "programs for GPUs cannot record one", "use a profiler such as Nsight Systems");
  }
}

std::string CudaDevice::description() const {
  return format("GPU %d %s sm_%d%d | CUDA %s | GPU memory in use %ld of %ld bytes", gpu_.ordinal,
                gpu_.name.c_str(), gpu_.major, gpu_.minor, driver_.version().c_str(),
                static_cast<long>(memory_used_), static_cast<long>(memory_total_));
}

}  // namespace sgtc::runtime::cuda
