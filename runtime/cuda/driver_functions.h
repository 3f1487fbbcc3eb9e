// What is used of the CUDA driver's binary interface: own declarations, since the driver is loaded
// at run time and neither building nor running needs NVIDIA's headers. A test compares them with
// cuda.h where that is found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sgtc::runtime::cuda {

/// CUuuid
struct DeviceId {
  char bytes[16];
};

/// An address in the memory of a GPU.
using DeviceAddress = unsigned long long;
/// Names memory of a GPU that may be mapped at several addresses.
using MemoryHandle = unsigned long long;

using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphNode = struct GraphNodeObject*;
using ExecutableGraph = struct ExecutableGraphObject*;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParameters {
  Function function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};

/// CUlaunchAttributeValue: the only member that is used.
union LaunchAttributeValue {
  unsigned cluster[3];  // blocks, by dimension
  char bytes[64];
};

/// CUlaunchAttribute
struct LaunchAttribute {
  int id;
  alignas(8) LaunchAttributeValue value;
};

/// CUlaunchConfig
struct LaunchConfiguration {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// CUtensorMap
struct alignas(128) EncodedTensorMap {
  uint64_t words[16];
};

/// CUDA_MEMSET_NODE_PARAMS_v1
struct MemsetNodeParameters {
  DeviceAddress address;
  size_t pitch;
  unsigned value;
  unsigned element_bytes;
  size_t width;  // elements
  size_t height;
};

/// CUmemAccessDesc
struct MemoryAccess {
  struct {
    int type;
    int id;  // the driver's number of the GPU
  } location;
  int rights;
};

/// CUstreamBatchMemOpParams: of the operations on one word.
struct WordOperation {
  int kind;
  DeviceAddress address;
  uint64_t value;  // 32 bits
  unsigned flags;
  DeviceAddress alias;
  uint64_t unused;
};

// Results of calls that messages tell apart.
inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kNoBinaryForGpu = 209;
inline constexpr int kNoPtxCompiler = 221;
inline constexpr int kUnsupportedPtxVersion = 222;

// Attributes, options and flags.
inline constexpr int kMultiprocessors = 16;
inline constexpr int kMajorVersion = 75;
inline constexpr int kMinorVersion = 76;
inline constexpr int kCanFlushRemoteWrites = 98;
inline constexpr int kMaxDynamicSharedBytes = 8;  // of a function
inline constexpr int kClusterDimension = 4;       // of a launch
inline constexpr int kJitErrorLog = 5;
inline constexpr int kJitErrorLogBytes = 6;
inline constexpr int kNoInterleave = 0;   // of tensor maps
inline constexpr int kSwizzle128 = 3;     // bytes
inline constexpr int kPromote256 = 3;     // bytes that a miss brings into the second cache
inline constexpr int kFillWithZeros = 0;  // outside of the tensor
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureRelaxed = 2;  // other calls go on as usual meanwhile
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr int kFileDescriptor = 1;  // what memory is shared as
inline constexpr int kDeviceLocation = 1;  // of memory
inline constexpr int kReadAndWrite = 3;    // rights
inline constexpr int kWaitForWord = 1;     // kinds of operations on words
inline constexpr int kWriteWord = 2;
inline constexpr unsigned kUntilEqual = 1;  // flags of waits
inline constexpr unsigned kFlushRemoteWrites = 1u << 30;

/// All functions that are used, by their exported names: F(name, parameters).
#define SGTC_CUDA_FUNCTIONS(F)                                                                     \
  F(cuInit, (unsigned flags))                                                                      \
  F(cuDriverGetVersion, (int* version))                                                            \
  F(cuGetErrorName, (int result, const char** text))                                               \
  F(cuGetErrorString, (int result, const char** text))                                             \
  F(cuDeviceGetCount, (int* count))                                                                \
  F(cuDeviceGet, (int* device, int ordinal))                                                       \
  F(cuDeviceGetName, (char* name, int capacity, int device))                                       \
  F(cuDeviceGetAttribute, (int* value, int attribute, int device))                                 \
  F(cuDeviceGetUuid_v2, (DeviceId * id, int device))                                               \
  F(cuDevicePrimaryCtxRetain, (Context * context, int device))                                     \
  F(cuCtxSetCurrent, (Context context))                                                            \
  F(cuMemGetInfo_v2, (size_t* free, size_t* total))                                                \
  F(cuMemAlloc_v2, (DeviceAddress * address, size_t bytes))                                        \
  F(cuMemGetAddressRange_v2, (DeviceAddress * base, size_t* bytes, DeviceAddress address))         \
  F(cuMemRetainAllocationHandle, (MemoryHandle * handle, void* address))                           \
  F(cuMemExportToShareableHandle,                                                                  \
    (void* shared, MemoryHandle handle, int kind, unsigned long long flags))                       \
  F(cuMemImportFromShareableHandle, (MemoryHandle * handle, void* shared, int kind))               \
  F(cuMemRelease, (MemoryHandle handle))                                                           \
  F(cuMemAddressReserve, (DeviceAddress * address, size_t bytes, size_t alignment,                 \
                          DeviceAddress wanted, unsigned long long flags))                         \
  F(cuMemMap, (DeviceAddress address, size_t bytes, size_t offset, MemoryHandle handle,            \
               unsigned long long flags))                                                          \
  F(cuMemSetAccess,                                                                                \
    (DeviceAddress address, size_t bytes, const MemoryAccess* access, size_t count))               \
  F(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags))                                 \
  F(cuMemHostRegister_v2, (void* memory, size_t bytes, unsigned flags))                            \
  F(cuMemsetD8Async, (DeviceAddress to, unsigned char value, size_t bytes, Stream stream))         \
  F(cuMemcpyHtoDAsync_v2, (DeviceAddress to, const void* from, size_t bytes, Stream stream))       \
  F(cuMemcpyDtoHAsync_v2, (void* to, DeviceAddress from, size_t bytes, Stream stream))             \
  F(cuMemcpyDtoDAsync_v2, (DeviceAddress to, DeviceAddress from, size_t bytes, Stream stream))     \
  F(cuStreamCreate, (Stream * stream, unsigned flags))                                             \
  F(cuStreamSynchronize, (Stream stream))                                                          \
  F(cuStreamBeginCapture_v2, (Stream stream, int mode))                                            \
  F(cuStreamEndCapture, (Stream stream, Graph * graph))                                            \
  F(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                               \
  F(cuStreamBatchMemOp_v2,                                                                         \
    (Stream stream, unsigned count, WordOperation* operations, unsigned flags))                    \
  F(cuEventCreate, (Event * event, unsigned flags))                                                \
  F(cuEventDestroy_v2, (Event event))                                                              \
  F(cuEventElapsedTime, (float* milliseconds, Event from, Event to))                               \
  F(cuEventRecord, (Event event, Stream stream))                                                   \
  F(cuEventSynchronize, (Event event))                                                             \
  F(cuModuleLoadDataEx,                                                                            \
    (Module * module, const void* image, unsigned count, int* options, void** values))             \
  F(cuModuleGetFunction, (Function * function, Module module, const char* name))                   \
  F(cuFuncSetAttribute, (Function function, int attribute, int value))                             \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                   \
    (int* blocks, Function function, int threads, size_t shared_bytes))                            \
  F(cuOccupancyMaxActiveClusters,                                                                  \
    (int* clusters, Function function, const LaunchConfiguration* configuration))                  \
  F(cuTensorMapEncodeTiled,                                                                        \
    (EncodedTensorMap * map, int type, unsigned rank, void* tensor, const uint64_t* sizes,         \
     const uint64_t* strides, const unsigned* box, const unsigned* steps, int interleave,          \
     int swizzle, int promotion, int fill))                                                        \
  F(cuLaunchKernelEx, (const LaunchConfiguration* configuration, Function function,                \
                       void** parameters, void** extra))                                           \
  F(cuGraphCreate, (Graph * graph, unsigned flags))                                                \
  F(cuGraphDestroy, (Graph graph))                                                                 \
  F(cuGraphAddKernelNode_v2, (GraphNode * node, Graph graph, const GraphNode* after, size_t count, \
                              const KernelNodeParameters* parameters))                             \
  F(cuGraphKernelNodeSetAttribute,                                                                 \
    (GraphNode node, int attribute, const LaunchAttributeValue* value))                            \
  F(cuGraphAddMemsetNode, (GraphNode * node, Graph graph, const GraphNode* after, size_t count,    \
                           const MemsetNodeParameters* parameters, Context context))               \
  F(cuGraphAddChildGraphNode,                                                                      \
    (GraphNode * node, Graph graph, const GraphNode* after, size_t count, Graph child))            \
  F(cuGraphInstantiateWithFlags,                                                                   \
    (ExecutableGraph * executable, Graph graph, unsigned long long flags))                         \
  F(cuGraphExecDestroy, (ExecutableGraph executable))                                              \
  F(cuGraphLaunch, (ExecutableGraph executable, Stream stream))

struct Functions {
#define SGTC_CUDA_MEMBER(name, parameters) int(*name) parameters = nullptr;
  SGTC_CUDA_FUNCTIONS(SGTC_CUDA_MEMBER)
#undef SGTC_CUDA_MEMBER
};

}  // namespace sgtc::runtime::cuda
