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

std::vector<Launch> launches(const DeviceRequest& request, const char* name) {
  return list_launches(request.plan, request.coordinates, name, request.memory);
}

/// What lies in device memory for the launches of both schedules.
template <typename Tables>
Tables make(const DeviceRequest& request, const Driver& driver, const DeviceArena& arena,
            Stream stream) {
  const std::vector<Launch> train = launches(request, "train");
  const std::vector<Launch> evaluate = launches(request, "evaluate");
  return {driver, arena, stream, {&train, &evaluate}};
}

DeviceSchedule schedule(const DeviceRequest& request, const char* name, const Driver& driver,
                        const DeviceArena& arena, const std::optional<Communicators>& communicators,
                        Kernels& kernels, const TensorMaps& maps, const ArgumentTables& tables,
                        std::optional<AccessCheck>& check) {
  return {driver,
          arena,
          communicators ? &*communicators : nullptr,
          kernels,
          maps,
          tables,
          launches(request, name),
          joined(request, cleared_ranges(request.memory, request.states)),
          is_stepwise() || check,
          check ? &*check : nullptr};
}

std::optional<AccessCheck> access_check(const DeviceRequest& request, const DeviceArena& arena) {
  if (!request.check_accesses) return std::nullopt;
  return std::optional<AccessCheck>(std::in_place, arena, request.arena, position_of(request));
}

int64_t free_memory(const Driver& driver, int64_t* total = nullptr) {
  size_t free = 0;
  size_t all = 0;
  SGTC_CUDA(driver, cuMemGetInfo_v2(&free, &all));
  if (total) *total = static_cast<int64_t>(all);
  return static_cast<int64_t>(free);
}

Gpu take_gpu(const DeviceRequest& request, Driver& driver) {
  const Gpu gpu = choose_gpu(driver, request.plan.target, request.local_rank, request.local_size);
  if (request.peers) check_apart(driver, *request.peers, gpu.ordinal);
  return gpu;
}

std::optional<Nccl> load_nccl(const DeviceRequest& request) {
  if (!request.peers) return std::nullopt;
  return std::optional<Nccl>(std::in_place, *request.peers);
}

// The memory that is free once all ranks are connected.
int64_t connect(const DeviceRequest& request, const Driver& driver, const Gpu& gpu,
                const std::optional<Nccl>& nccl, const DeviceArena& arena, Stream stream,
                std::optional<Communicators>& communicators) {
  if (nccl) {
    std::vector<Launch> all = launches(request, "train");
    for (Launch& launch : launches(request, "evaluate")) all.push_back(std::move(launch));
    communicators.emplace(driver, *nccl, *request.peers, request.plan, arena, gpu.ordinal, stream,
                          all);
  }
  return free_memory(driver);
}

}  // namespace

CudaDevice::CudaDevice(const DeviceRequest& request)
    : gpu_(take_gpu(request, driver_)),
      nccl_(load_nccl(request)),
      free_at_start_(free_memory(driver_)),
      stream_(new_stream(driver_)),
      arena_(driver_, nccl_ ? &*nccl_ : nullptr, request.arena, stream_),
      check_(access_check(request, arena_)),
      free_when_connected_(connect(request, driver_, gpu_, nccl_, arena_, stream_, communicators_)),
      kernels_(driver_, gpu_, request.plan, request.program),
      maps_(make<TensorMaps>(request, driver_, arena_, stream_)),
      tables_(make<ArgumentTables>(request, driver_, arena_, stream_)),
      inputs_(driver_, arena_,
              joined(request, input_ranges(request.plan, request.coordinates.pp, request.memory))),
      results_(driver_, arena_),
      train_(schedule(request, "train", driver_, arena_, communicators_, kernels_, maps_, tables_,
                      check_)),
      evaluate_(schedule(request, "evaluate", driver_, arena_, communicators_, kernels_, maps_,
                         tables_, check_)),
      threads_(request.threads, false) {
  if (nccl_) driver_.set_fault_hook([this] { nccl_->await_loss(); });
  if (request.poison) arena_.poison();
  const int64_t free = free_memory(driver_, &memory_total_);
  memory_used_ = memory_total_ - free;
  taken_ = free_at_start_ - free;
}

void CudaDevice::start(ScheduleKind kind, int64_t step) {
  inputs_.send(stream_);
  if (trace_ && kind == ScheduleKind::train) {
    train_.run_traced(stream_, step, *trace_);
  } else {
    (kind == ScheduleKind::train ? train_ : evaluate_).run(stream_, step);
  }
  results_.collect(stream_);
}

void CudaDevice::set_trace(Trace* trace) {
  trace_ = trace;
  if (trace) train_.prepare_trace(kernels_);
}

std::optional<Measurements> CudaDevice::measure() {
  Measurements result = train_.measure(stream_);
  result.hardware = gpu_.name;
  result.units = gpu_.multiprocessors;
  return result;
}

std::string CudaDevice::description() const {
  const int64_t connections =
      communicators_ ? free_at_start_ - arena_.bytes() - free_when_connected_ : 0;
  const int64_t rest = taken_ - arena_.bytes() - inputs_.bytes() - connections;
  std::string text = format(
      "GPU %d %s sm_%d%d | CUDA %s | GPU memory in use %ld of %ld bytes, by this program %ld: "
      "arena %ld, inputs %ld, kernels and graphs %ld",
      gpu_.ordinal, gpu_.name.c_str(), gpu_.major, gpu_.minor, driver_.version().c_str(),
      static_cast<long>(memory_used_), static_cast<long>(memory_total_), static_cast<long>(taken_),
      static_cast<long>(arena_.bytes()), static_cast<long>(inputs_.bytes()),
      static_cast<long>(rest));
  if (communicators_) {
    text += format(", communicators %ld | NCCL %s", static_cast<long>(connections),
                   nccl_->version().c_str());
    const std::vector<int64_t>& ranks = communicators_->connected_by_copies();
    if (!ranks.empty()) text += " | copy engines to rank";
    for (const int64_t rank : ranks) text += " " + std::to_string(rank);
  }
  return text;
}

}  // namespace sgtc::runtime::cuda
