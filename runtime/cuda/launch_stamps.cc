#include "cuda/launch_stamps.h"

#include <algorithm>
#include <limits>

#include "cuda/device_arena.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr int kAlignments = 5;

plan::Kernel mark_kernel() {
  plan::Kernel kernel;
  kernel.symbol = plan::kMarkKernel;
  kernel.launch.threads = 32;
  return kernel;
}

}  // namespace

LaunchStamps::LaunchStamps(const Driver& driver, Kernels& kernels, size_t launches)
    : driver_(driver),
      context_(kernels.context()),
      mark_(kernels.find(mark_kernel())),
      count_(launches),
      base_(allocate(driver, static_cast<int64_t>(launches + 1) * kStampBytes, "the trace")) {}

GraphNode LaunchStamps::add_reset(Graph graph) const {
  const MemsetNodeParameters ones = {
      base_, 0, 0xFFFFFFFF, sizeof(uint32_t), count_ * kStampBytes / sizeof(uint32_t), 1};
  GraphNode node = nullptr;
  SGTC_CUDA(driver_, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &ones, context_));
  return node;
}

GraphNode LaunchStamps::add_mark(Graph graph, size_t launch,
                                 const std::vector<GraphNode>& after) const {
  const plan::Kernel kernel = mark_kernel();
  uint64_t micro_batch = 0;
  uint64_t stamps = address(launch);
  void* values[] = {&micro_batch, &stamps};
  const KernelNodeParameters parameters = {
      mark_,   {1, 1, 1}, {static_cast<unsigned>(kernel.launch.threads), 1, 1}, 0, values, nullptr,
      nullptr, nullptr};
  GraphNode node = nullptr;
  SGTC_CUDA(driver_,
            cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &parameters));
  return node;
}

// The kernel runs between two looks at the host's clock; the closest two say most.
void LaunchStamps::align(Stream stream) {
  const plan::Kernel kernel = mark_kernel();
  const LaunchSettings settings(kernel, stream);
  uint64_t micro_batch = 0;
  uint64_t stamps = address(count_);
  void* values[] = {&micro_batch, &stamps};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kAlignments; ++i) {
    SGTC_CUDA(driver_, cuMemsetD8Async(address(count_), 0xFF, kStampBytes, stream));
    SGTC_CUDA(driver_, cuStreamSynchronize(stream));
    const int64_t before = monotonic_nanoseconds();
    SGTC_CUDA(driver_, cuLaunchKernelEx(&settings.configuration(), mark_, values, nullptr));
    SGTC_CUDA(driver_, cuStreamSynchronize(stream));
    const int64_t after = monotonic_nanoseconds();
    if (after - before >= least) continue;
    least = after - before;
    const auto time = static_cast<int64_t>(read(count_, 1, stream)[0].begin);
    offset_ = before + least / 2 - time;
  }
}

void LaunchStamps::add_to(Trace& trace, const std::vector<Launch>& launches, Stream stream) const {
  const std::vector<Stamp> stamps = read(0, count_, stream);
  const auto first =
      std::min_element(stamps.begin(), stamps.end(),
                       [](const Stamp& a, const Stamp& b) { return a.begin < b.begin; });
  const auto host_time = [&](uint64_t time) { return static_cast<int64_t>(time) + offset_; };
  for (size_t i = 0; i < count_; ++i) {
    if (stamps[i].begin == kNever || stamps[i].end_complement == kNever) continue;
    uint64_t ready = first->begin;
    for (const size_t earlier : launches[i].after) {
      ready = std::max(ready, ~stamps[earlier].end_complement);
    }
    Trace::Event event;
    event.task = launches[i].task;
    event.stream = launches[i].stream;
    event.micro_batch = launches[i].micro_batch;
    event.communicates = !launches[i].kernel;
    if (event.communicates) {
      event.begin = host_time(ready);
      event.end = host_time(stamps[i].begin);  // of the mark behind it
    } else {
      event.kernel = &launches[i].kernel->symbol;
      event.begin = host_time(stamps[i].begin);
      event.end = host_time(~stamps[i].end_complement);
      event.latency = static_cast<int64_t>(stamps[i].begin - ready);
    }
    trace.add(event);
  }
}

std::vector<LaunchStamps::Stamp> LaunchStamps::read(size_t first, size_t count,
                                                    Stream stream) const {
  constexpr size_t kWordsOfSlot = plan::kStampSlotBytes / sizeof(uint64_t);
  std::vector<uint64_t> words(count * kStampBytes / sizeof(uint64_t));
  SGTC_CUDA(driver_,
            cuMemcpyDtoHAsync_v2(words.data(), address(first), count * kStampBytes, stream));
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  std::vector<Stamp> stamps(count);
  for (size_t slot = 0; slot < count * plan::kStampSlots; ++slot) {
    Stamp& stamp = stamps[slot / plan::kStampSlots];
    stamp.begin = std::min(stamp.begin, words[slot * kWordsOfSlot]);
    stamp.end_complement = std::min(stamp.end_complement, words[slot * kWordsOfSlot + 1]);
  }
  return stamps;
}

}  // namespace sgtc::runtime::cuda
