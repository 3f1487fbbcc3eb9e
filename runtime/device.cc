#include "device.h"

#include <algorithm>

#include "cpu_device.h"
#include "cuda/cuda_device.h"

namespace sgtc::runtime {

std::vector<MemoryRange> cleared_ranges(const PlanMemory& memory, const States& states) {
  std::vector<MemoryRange> ranges = states.accumulators();
  if (const plan::Buffer* status = memory.find("status")) {
    ranges.push_back({memory.address(*status), plan::kStatusBytes});
  }
  return ranges;
}

std::vector<MemoryRange> input_ranges(const plan::Plan& plan, int64_t position,
                                      const PlanMemory& memory) {
  std::vector<MemoryRange> ranges;
  const auto add = [&](const plan::Buffer& buffer) {
    ranges.push_back({memory.address(buffer), (buffer.count - 1) * buffer.stride + buffer.bytes});
  };
  for (const plan::Feed& feed : plan.feeds) {
    if (feed.position == position) add(memory.buffer(feed.name));
  }
  if (const plan::Buffer* control = memory.find("control")) add(*control);
  return ranges;
}

int64_t host_bytes(const plan::Plan& plan, int64_t position) {
  const plan::Position& own = plan.positions[static_cast<size_t>(position)];
  if (plan.target == "cpu") return own.arena_bytes;
  int64_t bytes = 0;
  for (const plan::Buffer& buffer : own.buffers) {
    const bool fed = std::any_of(plan.feeds.begin(), plan.feeds.end(),
                                 [&](const plan::Feed& feed) { return feed.name == buffer.name; });
    if (fed || buffer.scope == "persistent") bytes += buffer.count * buffer.bytes;
  }
  return std::min(bytes, own.arena_bytes);
}

std::unique_ptr<Device> make_device(const DeviceRequest& request) {
  const std::string& target = request.plan.target;
  if (target == "cpu") return std::make_unique<CpuDevice>(request);
  if (target.rfind("sm_", 0) == 0) return std::make_unique<cuda::CudaDevice>(request);
  die_of_bad_plan("there is no target " + target);
}

}  // namespace sgtc::runtime
