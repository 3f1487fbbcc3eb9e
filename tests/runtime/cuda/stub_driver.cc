#include "runtime/cuda/stub_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/format.h"
#include "runtime/cuda/stub_streams.h"

namespace sgtc::runtime::cuda {

// The state that it had when it was recorded last.
struct EventObject {
  StreamObject* stream = nullptr;
  uint64_t number = 0;  // of records
  uint64_t reached = 0;
  double time = 0;  // when it was reached
};

struct ModuleObject {
  const StubImage* image;  // null: kernels do nothing
};

struct FunctionObject {
  std::string symbol;
  const StubKernel* kernel;  // null: it does nothing
};

struct ExecutableGraphObject {
  std::vector<StubWork> work;
};

namespace {

int drain(StreamObject* stream) {
  while (!stream->work.empty()) {
    const StubWork work = std::move(stream->work.front());
    stream->work.pop_front();
    if (const int result = work()) return result;
  }
  return kSuccess;
}

// Works in the event's stream until its last record, or the `number`-th, is reached.
int reach(EventObject* event, uint64_t number) {
  while (event->reached < number && !event->stream->work.empty()) {
    const StubWork work = std::move(event->stream->work.front());
    event->stream->work.pop_front();
    if (const int result = work()) return result;
  }
  return kSuccess;
}

double clock_milliseconds = 1;  // a communication takes one

void lower(uint64_t& word, uint64_t value) { word = std::min(word, value); }

uint64_t timer() { return static_cast<uint64_t>(clock_milliseconds * 1e6); }

// The words of a slot of stamps.
uint64_t* slot_of(uint64_t* stamps, unsigned number) {
  return stamps + number % plan::kStampSlots * plan::kStampSlotBytes / sizeof(uint64_t);
}

// Parameters: arguments, the micro-batch, tensor maps, stamps, of which begin and end go to
// different slots.
int run_kernel(const StubKernel& kernel, unsigned blocks, std::vector<uint64_t> parameters) {
  auto* const stamps = reinterpret_cast<uint64_t*>(parameters.back());
  parameters.pop_back();
  if (stamps) lower(slot_of(stamps, blocks)[0], timer());
  clock_milliseconds += kernel.milliseconds;
  if (stamps) lower(slot_of(stamps, blocks + 1)[1], ~timer());
  const auto place = parameters.begin() + kernel.arguments;
  const auto micro_batch = static_cast<int64_t>(*place);
  parameters.erase(place);
  std::vector<void*> arguments;
  for (const uint64_t address : parameters) arguments.push_back(reinterpret_cast<void*>(address));
  kernel.function(arguments.data(), 0, blocks, micro_batch);
  return scripted(std::string("kernel ") + kernel.symbol);
}

StubWork kernel_work(Function function, unsigned blocks, void** parameters) {
  if (!function->kernel) return [] { return kSuccess; };
  std::vector<uint64_t> values;
  const StubKernel& kernel = *function->kernel;
  for (int64_t i = 0; i <= kernel.arguments + kernel.tensor_maps + 1; ++i) {
    values.push_back(*static_cast<uint64_t*>(parameters[i]));
  }
  return [=] { return run_kernel(*function->kernel, blocks, values); };
}

StubWork copy_work(void* to, const void* from, size_t bytes) {
  return [=] {
    std::memcpy(to, from, bytes);
    return kSuccess;
  };
}

void* pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }

std::vector<std::pair<const char*, size_t>> pinned;

// Host memory of a copy is pinned as a whole or not at all.
bool is_pinned_in_part(const void* memory, size_t bytes) {
  const char* begin = static_cast<const char*>(memory);
  return std::any_of(pinned.begin(), pinned.end(), [&](const auto& range) {
    const auto& [first, size] = range;
    const bool overlaps = begin < first + size && first < begin + bytes;
    return overlaps && (begin < first || begin + bytes > first + size);
  });
}

int multiprocessors() { return static_cast<int>(number_from("SGTC_STUB_MULTIPROCESSORS", 132)); }

// "forward 2x128+1024": blocks, threads, bytes of shared memory.
std::string launch_text(Function function, unsigned blocks, unsigned threads, unsigned shared) {
  return function->symbol + " " + std::to_string(blocks) + "x" + std::to_string(threads) +
         (shared > 0 ? "+" + std::to_string(shared) : "");
}

template <typename Number>
std::string list_text(const Number* numbers, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  return text;
}

std::string after_text(const GraphNode* after, size_t count) {
  std::string text = " after";
  for (size_t i = 0; i < count; ++i) text += " " + std::to_string(after[i]->index);
  return text;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  STUB_ENTER("cuInit", std::string(" connections ") + std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
  return number_from("SGTC_STUB_GPUS", 1) == 0 ? kNoDevice : kSuccess;
}

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return kSuccess;
}

int cuGetErrorName(int result, const char** text) {
  *text = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_STUB";
  return kSuccess;
}

int cuGetErrorString(int, const char** text) {
  *text = "scripted error";
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(number_from("SGTC_STUB_GPUS", 1));
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  STUB_ENTER("cuDeviceGet", " " + std::to_string(ordinal));
  *device = ordinal;
  return kSuccess;
}

int cuDeviceGetUuid_v2(DeviceId* id, int device) {
  *id = {{static_cast<char>(device + 1)}};
  return kSuccess;
}

int cuDeviceGetName(char* name, int capacity, int) {
  std::snprintf(name, static_cast<size_t>(capacity), "Stub");
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = static_cast<int>(number_from("SGTC_STUB_CAPABILITY", 90));
  if (attribute == kMajorVersion) *value = capability / 10;
  if (attribute == kMinorVersion) *value = capability % 10;
  if (attribute == kMultiprocessors) *value = multiprocessors();
  if (attribute == kCanFlushRemoteWrites) *value = number_from("SGTC_STUB_FLUSHES", 0) != 0;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(Context* context, int) {
  STUB_ENTER("cuDevicePrimaryCtxRetain", "");
  static char primary;
  *context = reinterpret_cast<Context>(&primary);
  return kSuccess;
}

int cuCtxSetCurrent(Context) { return kSuccess; }

int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::calloc(1, bytes);
  return kSuccess;
}

int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  STUB_ENTER("cuMemHostRegister_v2", " " + std::to_string(bytes));
  pinned.emplace_back(static_cast<const char*>(memory), bytes);
  return kSuccess;
}

int cuMemsetD8Async(DeviceAddress to, unsigned char value, size_t bytes, Stream stream) {
  STUB_ENTER("cuMemsetD8Async", " " + std::to_string(bytes));
  stream->work.push_back([=] {
    std::memset(pointer(to), value, bytes);
    return kSuccess;
  });
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, size_t bytes, Stream stream) {
  STUB_ENTER("cuMemcpyHtoDAsync_v2", " " + std::to_string(bytes));
  if (is_pinned_in_part(from, bytes)) return 1;
  stream->work.push_back(copy_work(pointer(to), from, bytes));
  return kSuccess;
}

int cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, size_t bytes, Stream stream) {
  STUB_ENTER("cuMemcpyDtoHAsync_v2", " " + std::to_string(bytes));
  if (is_pinned_in_part(to, bytes)) return 1;
  stream->work.push_back(copy_work(to, pointer(from), bytes));
  return kSuccess;
}

int cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, size_t bytes, Stream stream) {
  STUB_ENTER("cuMemcpyDtoDAsync_v2", " " + std::to_string(bytes));
  put(stream, "copy:" + std::to_string(bytes), copy_work(pointer(to), pointer(from), bytes));
  return kSuccess;
}

int cuStreamCreate(Stream* stream, unsigned) {
  *stream = new StreamObject;
  return kSuccess;
}

int cuStreamSynchronize(Stream stream) {
  STUB_ENTER("cuStreamSynchronize", "");
  return drain(stream);
}

int cuStreamBeginCapture_v2(Stream stream, int mode) {
  STUB_ENTER("cuStreamBeginCapture_v2", " " + std::to_string(mode));
  stream->captured = new GraphObject;
  return kSuccess;
}

int cuStreamEndCapture(Stream stream, Graph* graph) {
  STUB_ENTER("cuStreamEndCapture", "");
  *graph = std::exchange(stream->captured, nullptr);
  return kSuccess;
}

int cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  STUB_ENTER("cuStreamWaitEvent", "");
  const uint64_t number = event->number;
  stream->work.push_back([=] { return reach(event, number); });
  return kSuccess;
}

// As a batch begins one operation after the other.
int cuStreamBatchMemOp_v2(Stream stream, unsigned count, WordOperation* operations, unsigned) {
  STUB_ENTER("cuStreamBatchMemOp_v2", "");
  std::string name;
  for (unsigned i = 0; i < count; ++i) {
    const bool waits = operations[i].kind == kWaitForWord;
    name += (i == 0 ? "" : "+") + std::string(waits ? "wait:" : "write:") +
            std::to_string(operations[i].value);
    if (waits && (operations[i].flags & kUntilEqual) == 0) return 1;
    if (operations[i].flags & kFlushRemoteWrites) log("flushes");
  }
  const std::vector<WordOperation> all(operations, operations + count);
  put(stream, name, [all] {
    for (const WordOperation& each : all) {
      auto* const word = static_cast<uint32_t*>(pointer(each.address));
      const auto value = static_cast<uint32_t>(each.value);
      if (each.kind == kWriteWord) __atomic_store_n(word, value, __ATOMIC_RELEASE);
      while (each.kind == kWaitForWord && __atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        usleep(200);
      }
    }
    return kSuccess;
  });
  return kSuccess;
}

int cuEventCreate(Event* event, unsigned) {
  *event = new EventObject;
  return kSuccess;
}

int cuEventRecord(Event event, Stream stream) {
  STUB_ENTER("cuEventRecord", "");
  const uint64_t number = ++event->number;
  event->stream = stream;
  stream->work.push_back([=] {
    event->reached = number;
    event->time = clock_milliseconds;
    return kSuccess;
  });
  return kSuccess;
}

int cuEventSynchronize(Event event) {
  STUB_ENTER("cuEventSynchronize", "");
  return reach(event, event->number);
}

int cuEventDestroy_v2(Event event) {
  delete event;
  return kSuccess;
}

int cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  STUB_ENTER("cuEventElapsedTime", "");
  if (from->reached < from->number || to->reached < to->number) return 600;  // not ready
  *milliseconds = static_cast<float>(to->time - from->time);
  return kSuccess;
}

int cuModuleLoadDataEx(Module* module, const void* image, unsigned options, int*, void**) {
  STUB_ENTER(options == 0 ? "load cubin" : "load ptx", "");
  const char* kernels = std::getenv("SGTC_STUB_KERNELS");
  const bool none = kernels && std::strcmp(kernels, "none") == 0;
  *module = new ModuleObject{none ? nullptr : static_cast<const StubImage*>(image)};
  return kSuccess;
}

int cuModuleGetFunction(Function* function, Module module, const char* name) {
  STUB_ENTER("cuModuleGetFunction", std::string(" ") + name);
  if (!module->image) {
    *function = new FunctionObject{name, nullptr};
    return kSuccess;
  }
  const StubKernel* end = module->image->kernels + module->image->count;
  const StubKernel* found =
      std::find_if(module->image->kernels, end,
                   [&](const StubKernel& kernel) { return std::strcmp(kernel.symbol, name) == 0; });
  if (found == end) return 500;
  *function = new FunctionObject{name, found};
  return kSuccess;
}

int cuFuncSetAttribute(Function function, int attribute, int value) {
  STUB_ENTER("cuFuncSetAttribute", " " + function->symbol + " " + std::to_string(attribute) + " " +
                                       std::to_string(value));
  return kSuccess;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int, size_t) {
  *blocks = 1;
  return kSuccess;
}

int cuOccupancyMaxActiveClusters(int* clusters, Function, const LaunchConfiguration* launch) {
  *clusters = multiprocessors() / static_cast<int>(launch->attributes[0].value.cluster[0]);
  return kSuccess;
}

int cuTensorMapEncodeTiled(EncodedTensorMap* map, int type, unsigned rank, void* tensor,
                           const uint64_t* sizes, const uint64_t* strides, const unsigned* box,
                           const unsigned* steps, int interleave, int swizzle, int promotion,
                           int fill) {
  STUB_ENTER("map", " type " + std::to_string(type) + " sizes " + list_text(sizes, rank) +
                        " strides " + list_text(strides, rank - 1) + " box " +
                        list_text(box, rank) + " steps " + list_text(steps, rank) + " layout " +
                        std::to_string(interleave) + " " + std::to_string(swizzle) + " " +
                        std::to_string(promotion) + " " + std::to_string(fill));
  *map = {{reinterpret_cast<uint64_t>(tensor)}};
  return map->words[0] % 16 == 0 ? kSuccess : 1;
}

int cuLaunchKernelEx(const LaunchConfiguration* launch, Function function, void** parameters,
                     void**) {
  std::string text =
      " " + launch_text(function, launch->grid[0], launch->block[0], launch->shared_bytes);
  for (unsigned i = 0; i < launch->attribute_count; ++i) {
    text += " attribute " + std::to_string(launch->attributes[i].id) + " " +
            list_text(launch->attributes[i].value.cluster, 3);
  }
  STUB_ENTER("cuLaunchKernelEx", text);
  launch->stream->work.push_back(kernel_work(function, launch->grid[0], parameters));
  return kSuccess;
}

int cuGraphCreate(Graph* graph, unsigned) {
  STUB_ENTER("cuGraphCreate", "");
  *graph = new GraphObject;
  return kSuccess;
}

int cuGraphDestroy(Graph graph) {
  delete graph;
  return kSuccess;
}

int cuGraphAddKernelNode_v2(GraphNode* node, Graph graph, const GraphNode* after, size_t count,
                            const KernelNodeParameters* parameters) {
  const size_t index = graph->nodes.size();
  STUB_ENTER("node", " " + std::to_string(index) + " " +
                         launch_text(parameters->function, parameters->grid[0],
                                     parameters->block[0], parameters->shared_bytes) +
                         after_text(after, count));
  graph->nodes.push_back(
      {index, parameters->function->symbol,
       kernel_work(parameters->function, parameters->grid[0], parameters->parameters)});
  *node = &graph->nodes.back();
  return kSuccess;
}

int cuGraphKernelNodeSetAttribute(GraphNode node, int attribute,
                                  const LaunchAttributeValue* value) {
  STUB_ENTER("attribute", " " + node->symbol + " " + std::to_string(attribute) + " " +
                              list_text(value->cluster, 3));
  return kSuccess;
}

int cuGraphAddMemsetNode(GraphNode* node, Graph graph, const GraphNode* after, size_t count,
                         const MemsetNodeParameters* parameters, Context context) {
  if (!context) return 1;
  const size_t index = graph->nodes.size();
  const size_t bytes = parameters->width * parameters->element_bytes;
  const auto value = static_cast<unsigned char>(parameters->value);  // all bytes of it
  STUB_ENTER("node", " " + std::to_string(index) + (value == 0 ? " clear " : " fill ") +
                         std::to_string(bytes) + after_text(after, count));
  void* to = pointer(parameters->address);
  graph->nodes.push_back({index, "clear", [=] {
                            std::memset(to, value, bytes);
                            return kSuccess;
                          }});
  *node = &graph->nodes.back();
  return kSuccess;
}

int cuGraphAddChildGraphNode(GraphNode* node, Graph graph, const GraphNode* after, size_t count,
                             Graph child) {
  const size_t index = graph->nodes.size();
  std::string names;
  std::vector<StubWork> all;
  for (const GraphNodeObject& each : child->nodes) {
    names += " " + each.symbol;
    all.push_back(each.work);
  }
  STUB_ENTER("node", " " + std::to_string(index) + names + after_text(after, count));
  graph->nodes.push_back({index, "child", [all] {
                            ++clock_milliseconds;
                            int result = kSuccess;
                            for (size_t i = 0; i < all.size() && result == kSuccess; ++i) {
                              result = all[i]();
                            }
                            return result;
                          }});
  *node = &graph->nodes.back();
  return kSuccess;
}

int cuGraphInstantiateWithFlags(ExecutableGraph* executable, Graph graph, unsigned long long) {
  STUB_ENTER("cuGraphInstantiateWithFlags", "");
  *executable = new ExecutableGraphObject;
  for (const GraphNodeObject& node : graph->nodes) (*executable)->work.push_back(node.work);
  return kSuccess;
}

int cuGraphExecDestroy(ExecutableGraph executable) {
  delete executable;
  return kSuccess;
}

int cuGraphLaunch(ExecutableGraph executable, Stream stream) {
  STUB_ENTER("cuGraphLaunch", "");
  for (const StubWork& work : executable->work) stream->work.push_back(work);
  return kSuccess;
}

}  // extern "C"

}  // namespace sgtc::runtime::cuda
