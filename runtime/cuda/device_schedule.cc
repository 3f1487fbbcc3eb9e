#include "cuda/device_schedule.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cuda/stopwatch.h"
#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

// Measured calls of one kernel, each with tensors of its own.
constexpr int kMostCalls = 3;
// A GPU that works needs so long until its clocks are what they stay at.
constexpr double kSustainedSeconds = 0.03;
constexpr int kLeastRepetitions = 5;
constexpr int kMostRepetitions = 500;
// The same on all ranks, which take part in each of them.
constexpr int kRepetitionsOfCommunications = 20;

// As plans call them; both ends of a transfer measure the same.
const char* name_of(CommunicationKind kind) {
  switch (kind) {
    case CommunicationKind::all_reduce:
      return "all_reduce";
    case CommunicationKind::reduce_scatter:
      return "reduce_scatter";
    case CommunicationKind::all_gather:
      return "all_gather";
    case CommunicationKind::broadcast:
      return "broadcast";
    default:
      return "send";
  }
}

int64_t bytes_of(const std::vector<Part>& parts) {
  int64_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

// Whole words are faster to set than bytes.
MemsetNodeParameters zeroes(DeviceAddress address, size_t bytes) {
  const unsigned element = (address | bytes) % 4 == 0 ? 4 : 1;
  return {address, 0, 0, element, bytes / element, 1};
}

}  // namespace

DeviceSchedule::DeviceSchedule(const Driver& driver, const DeviceArena& arena,
                               const Communicators* communicators, Kernels& kernels,
                               const TensorMaps& maps, const ArgumentTables& tables,
                               std::vector<Launch> launches,
                               const std::vector<MemoryRange>& cleared, bool stepwise,
                               AccessCheck* check)
    : driver_(driver),
      context_(kernels.context()),
      communicators_(communicators),
      launches_(std::move(launches)),
      check_(check) {
  if (launches_.empty()) return;
  for (const MemoryRange& range : cleared) {
    clears_.push_back({arena.address(range.data), static_cast<size_t>(range.bytes)});
  }
  for (const Launch& launch : launches_) resolve(launch, arena, kernels, maps, tables);
  if (!stepwise) graph_ = build_graph(nullptr);
}

void DeviceSchedule::resolve(const Launch& launch, const DeviceArena& arena, Kernels& kernels,
                             const TensorMaps& maps, const ArgumentTables& tables) {
  Call& call = calls_.emplace_back();
  if (!launch.kernel) {
    if (!communicators_) die_of_bad_plan("task " + *launch.task + " needs peers");
    return;
  }
  call.function = kernels.find(*launch.kernel);
  for (const MemoryRange& argument : launch.arguments) {
    call.parameters.push_back(arena.address(argument.data));
  }
  if (launch.kernel->launch.indirect) call.parameters = {tables.address(call.parameters)};
  call.parameters.push_back(static_cast<uint64_t>(launch.global_micro_batch));
  for (const plan::TensorMap& map : launch.kernel->launch.tensor_maps) {
    call.parameters.push_back(
        maps.address(map, call.parameters[static_cast<size_t>(map.argument)]));
  }
  call.parameters.push_back(0);  // no stamps
  for (uint64_t& parameter : call.parameters) call.pointers.push_back(&parameter);
}

ExecutableGraph DeviceSchedule::build_graph(const LaunchStamps* stamps) const {
  Graph graph = nullptr;
  SGTC_CUDA(driver_, cuGraphCreate(&graph, 0));
  std::vector<GraphNode> first = add_clears(graph);
  if (stamps) first.push_back(stamps->add_reset(graph));
  std::vector<GraphNode> nodes;
  for (size_t i = 0; i < launches_.size(); ++i) {
    std::vector<GraphNode> after;
    for (const size_t earlier : launches_[i].after) after.push_back(nodes[earlier]);
    if (after.empty()) after = first;
    if (launches_[i].kernel) {
      nodes.push_back(add_call(graph, i, after, stamps ? stamps->address(i) : 0));
    } else {
      nodes.push_back(add_communications(graph, launches_[i], after));
      if (stamps) nodes.back() = stamps->add_mark(graph, i, {nodes.back()});
    }
  }
  ExecutableGraph executable = nullptr;
  SGTC_CUDA(driver_, cuGraphInstantiateWithFlags(&executable, graph, 0));
  SGTC_CUDA(driver_, cuGraphDestroy(graph));
  return executable;
}

std::vector<GraphNode> DeviceSchedule::add_clears(Graph graph) const {
  std::vector<GraphNode> nodes;
  for (const Clear& clear : clears_) {
    const MemsetNodeParameters parameters = zeroes(clear.address, clear.bytes);
    GraphNode node = nullptr;
    // Memory that peers may use belongs to no context, so that the driver cannot know it.
    SGTC_CUDA(driver_, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &parameters, context_));
    nodes.push_back(node);
  }
  return nodes;
}

GraphNode DeviceSchedule::add_call(Graph graph, size_t index, const std::vector<GraphNode>& after,
                                   DeviceAddress stamps) const {
  const Call& call = calls_[index];
  std::vector<void*> pointers = call.pointers;
  pointers.back() = &stamps;
  const LaunchSettings settings(*launches_[index].kernel);
  const LaunchConfiguration& launch = settings.configuration();
  const KernelNodeParameters parameters = {call.function,
                                           {launch.grid[0], 1, 1},
                                           {launch.block[0], 1, 1},
                                           launch.shared_bytes,
                                           pointers.data(),
                                           nullptr,
                                           nullptr,
                                           nullptr};
  GraphNode node = nullptr;
  const int result = driver_.functions.cuGraphAddKernelNode_v2(&node, graph, after.data(),
                                                               after.size(), &parameters);
  driver_.check(result, ("cuGraphAddKernelNode for " + launches_[index].kernel->symbol).c_str());
  if (settings.cluster()) {
    SGTC_CUDA(driver_, cuGraphKernelNodeSetAttribute(node, kClusterDimension, settings.cluster()));
  }
  return node;
}

GraphNode DeviceSchedule::add_communications(Graph graph, const Launch& launch,
                                             const std::vector<GraphNode>& after) const {
  GraphNode node = nullptr;
  const Graph part = communicators_->capture(launch);
  SGTC_CUDA(driver_, cuGraphAddChildGraphNode(&node, graph, after.data(), after.size(), part));
  SGTC_CUDA(driver_, cuGraphDestroy(part));
  return node;
}

void DeviceSchedule::run(Stream stream, int64_t step) const {
  if (graph_) {
    if (communicators_) communicators_->enter(step, nullptr);
    SGTC_CUDA(driver_, cuGraphLaunch(graph_, stream));
  } else {
    run_stepwise(stream, step);
  }
}

void DeviceSchedule::clear(Stream stream) const {
  for (const Clear& clear : clears_) {
    SGTC_CUDA(driver_, cuMemsetD8Async(clear.address, 0, clear.bytes, stream));
  }
}

void DeviceSchedule::prepare_trace(Kernels& kernels) {
  if (launches_.empty()) return;
  stamps_.emplace(driver_, kernels, launches_.size());
  traced_ = build_graph(&*stamps_);
}

void DeviceSchedule::run_traced(Stream stream, int64_t step, Trace& trace) {
  if (!traced_) return;
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  stamps_->align(stream);
  if (communicators_) communicators_->enter(step, nullptr);
  SGTC_CUDA(driver_, cuGraphLaunch(traced_, stream));
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  stamps_->add_to(trace, launches_, stream);
  trace.end_step(step);
}

Measurements DeviceSchedule::measure(Stream stream) const {
  Measurements result;
  std::map<const plan::Kernel*, std::vector<double>> calls;
  clear(stream);
  for (size_t i = 0; i < launches_.size(); ++i) {
    start(i, stream);
    const plan::Kernel* kernel = launches_[i].kernel;
    if (!kernel) {
      const double seconds = seconds_of(i, kRepetitionsOfCommunications, stream);
      // Several at once were not measured alone.
      if (launches_[i].communications.size() == 1) {
        result.communications.push_back(measured(launches_[i].communications[0], seconds));
      }
    } else if (std::vector<double>& own = calls[kernel]; own.size() < kMostCalls) {
      own.push_back(seconds_of(i, stream));
    }
  }
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  for (auto& [kernel, seconds] : calls) {
    result.kernels.push_back({kernel, median(std::move(seconds))});
  }
  return result;
}

MeasuredCommunication DeviceSchedule::measured(const Launch::Communication& communication,
                                               double seconds) const {
  const CommunicationRequest& request = communication.request;
  return {name_of(request.kind), communicators_->size(communication),
          std::max(bytes_of(request.inputs), bytes_of(request.outputs)), seconds};
}

// Of one call among so many that the GPU works for a while.
double DeviceSchedule::seconds_of(size_t index, Stream stream) const {
  const double first = seconds_of(index, kLeastRepetitions, stream);
  const double wanted = kSustainedSeconds / std::max(first, 1e-9);
  const int repetitions =
      static_cast<int>(std::clamp<double>(std::ceil(wanted), kLeastRepetitions, kMostRepetitions));
  return seconds_of(index, repetitions, stream);
}

// A graph of them one after another, as in a step, started twice: first to warm up.
double DeviceSchedule::seconds_of(size_t index, int repetitions, Stream stream) const {
  const Launch& launch = launches_[index];
  Graph graph = nullptr;
  SGTC_CUDA(driver_, cuGraphCreate(&graph, 0));
  std::vector<GraphNode> last;
  for (int i = 0; i < repetitions; ++i) {
    last = {launch.kernel ? add_call(graph, index, last) : add_communications(graph, launch, last)};
  }
  ExecutableGraph executable = nullptr;
  SGTC_CUDA(driver_, cuGraphInstantiateWithFlags(&executable, graph, 0));
  SGTC_CUDA(driver_, cuGraphDestroy(graph));
  const Stopwatch watch(driver_);
  SGTC_CUDA(driver_, cuGraphLaunch(executable, stream));
  watch.start(stream);
  SGTC_CUDA(driver_, cuGraphLaunch(executable, stream));
  watch.stop(stream);
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  SGTC_CUDA(driver_, cuGraphExecDestroy(executable));
  return watch.seconds() / repetitions;
}

void DeviceSchedule::run_stepwise(Stream stream, int64_t step) const {
  clear(stream);
  SGTC_CUDA(driver_, cuStreamSynchronize(stream));
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Launch& launch = launches_[i];
    if (communicators_) communicators_->enter(step, &launch);
    start_checked(i, stream);
    const int result = driver_.functions.cuStreamSynchronize(stream);
    if (result == kSuccess) continue;
    const std::string kernel = launch.kernel ? "kernel " + launch.kernel->symbol + " of " : "";
    die(driver_.subject(),
        kernel + "task " + *launch.task +
            format(" failed in step %ld, micro-batch %ld: ", static_cast<long>(step),
                   static_cast<long>(launch.micro_batch)) +
            driver_.text_of(result));
  }
}

void DeviceSchedule::start_checked(size_t index, Stream stream) const {
  const Launch& launch = launches_[index];
  if (!check_ || !launch.kernel) return start(index, stream);
  // Reading the arena waits for the stream.
  check_->check({*launch.kernel, *launch.task, launch.arguments}, [&] { start(index, stream); });
}

void DeviceSchedule::start(size_t index, Stream stream) const {
  if (!launches_[index].kernel) return communicators_->issue(launches_[index], stream);
  const LaunchSettings settings(*launches_[index].kernel, stream);
  const Call& call = calls_[index];
  SGTC_CUDA(driver_, cuLaunchKernelEx(&settings.configuration(), call.function,
                                      const_cast<void**>(call.pointers.data()), nullptr));
}

}  // namespace sgtc::runtime::cuda
