// The own declarations of the driver's interface, beside those of cuda.h where that is found.
#include "runtime/cuda/driver_functions.h"

#ifdef SGTC_HAS_CUDA_HEADER

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "support/catch.h"

// From CUDA 13 on the header calls a later form so. Drivers keep the first one, with the same
// parameters.
#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
#endif

namespace sgtc::runtime::cuda {
namespace {

// Pointers and numbers are passed alike if they are of one kind and size.
template <typename Own, typename Theirs>
constexpr bool same_kind =
    sizeof(Own) == sizeof(Theirs) && std::is_pointer_v<Own> == std::is_pointer_v<Theirs>;

template <typename... Own, typename... Theirs>
constexpr bool agree(int (*)(Own...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Own) == sizeof...(Theirs)) {
    return (same_kind<Own, Theirs> && ...);
  } else {
    return false;
  }
}

}  // namespace

TEST_CASE("functions of the driver are declared as in cuda.h") {
  const Functions own;
#define SGTC_CHECK_AGREES(name, parameters) \
  CHECK(agree(decltype(own.name){}, static_cast<decltype(&::name)>(nullptr)));
  SGTC_CUDA_FUNCTIONS(SGTC_CHECK_AGREES)
#undef SGTC_CHECK_AGREES
}

TEST_CASE("structures of the driver are laid out as in cuda.h") {
  STATIC_REQUIRE(sizeof(KernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
  STATIC_REQUIRE(offsetof(KernelNodeParameters, grid) ==
                 offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX));
  STATIC_REQUIRE(offsetof(KernelNodeParameters, block) ==
                 offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
  STATIC_REQUIRE(offsetof(KernelNodeParameters, shared_bytes) ==
                 offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));
  STATIC_REQUIRE(offsetof(KernelNodeParameters, parameters) ==
                 offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
  STATIC_REQUIRE(offsetof(KernelNodeParameters, context) ==
                 offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));
  STATIC_REQUIRE(sizeof(DeviceId) == sizeof(CUuuid));
  STATIC_REQUIRE(sizeof(LaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
  STATIC_REQUIRE(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
  STATIC_REQUIRE(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
  STATIC_REQUIRE(sizeof(LaunchConfiguration) == sizeof(CUlaunchConfig));
  STATIC_REQUIRE(offsetof(LaunchConfiguration, block) == offsetof(CUlaunchConfig, blockDimX));
  STATIC_REQUIRE(offsetof(LaunchConfiguration, shared_bytes) ==
                 offsetof(CUlaunchConfig, sharedMemBytes));
  STATIC_REQUIRE(offsetof(LaunchConfiguration, stream) == offsetof(CUlaunchConfig, hStream));
  STATIC_REQUIRE(offsetof(LaunchConfiguration, attributes) == offsetof(CUlaunchConfig, attrs));
  STATIC_REQUIRE(offsetof(LaunchConfiguration, attribute_count) ==
                 offsetof(CUlaunchConfig, numAttrs));
  STATIC_REQUIRE(sizeof(EncodedTensorMap) == sizeof(CUtensorMap));
  STATIC_REQUIRE(alignof(EncodedTensorMap) % alignof(CUtensorMap) == 0);
  STATIC_REQUIRE(sizeof(MemoryAccess) == sizeof(CUmemAccessDesc));
  STATIC_REQUIRE(offsetof(MemoryAccess, rights) == offsetof(CUmemAccessDesc, flags));
  STATIC_REQUIRE(sizeof(WordOperation) == sizeof(CUstreamBatchMemOpParams));
  using Wait = decltype(CUstreamBatchMemOpParams::waitValue);
  using Write = decltype(CUstreamBatchMemOpParams::writeValue);
  STATIC_REQUIRE(offsetof(WordOperation, kind) == offsetof(Wait, operation));
  STATIC_REQUIRE(offsetof(WordOperation, address) == offsetof(Wait, address));
  STATIC_REQUIRE(offsetof(WordOperation, value) == offsetof(Wait, value));
  STATIC_REQUIRE(offsetof(WordOperation, flags) == offsetof(Wait, flags));
  STATIC_REQUIRE(offsetof(WordOperation, address) == offsetof(Write, address));
  STATIC_REQUIRE(offsetof(WordOperation, value) == offsetof(Write, value));
  STATIC_REQUIRE(offsetof(WordOperation, flags) == offsetof(Write, flags));
  STATIC_REQUIRE(sizeof(MemsetNodeParameters) == sizeof(CUDA_MEMSET_NODE_PARAMS));
  STATIC_REQUIRE(offsetof(MemsetNodeParameters, value) == offsetof(CUDA_MEMSET_NODE_PARAMS, value));
  STATIC_REQUIRE(offsetof(MemsetNodeParameters, element_bytes) ==
                 offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize));
  STATIC_REQUIRE(offsetof(MemsetNodeParameters, width) == offsetof(CUDA_MEMSET_NODE_PARAMS, width));
  STATIC_REQUIRE(offsetof(MemsetNodeParameters, height) ==
                 offsetof(CUDA_MEMSET_NODE_PARAMS, height));
}

TEST_CASE("constants of the driver are those of cuda.h") {
  CHECK(kSuccess == CUDA_SUCCESS);
  CHECK(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(kNoDevice == CUDA_ERROR_NO_DEVICE);
  CHECK(kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(kNoPtxCompiler == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  CHECK(kUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(kClusterDimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(kNoInterleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
  CHECK(kSwizzle128 == CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK(kPromote256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  CHECK(kFillWithZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(kMajorVersion == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CHECK(kMinorVersion == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  CHECK(kMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CHECK(kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER);
  CHECK(kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  CHECK(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
  CHECK(kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(kEventDefault == CU_EVENT_DEFAULT);
  CHECK(kEventBlockingSync == CU_EVENT_BLOCKING_SYNC);
  CHECK(kEventNoTiming == CU_EVENT_DISABLE_TIMING);
  CHECK(kCanFlushRemoteWrites == CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES);
  CHECK(kFileDescriptor == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CHECK(kDeviceLocation == CU_MEM_LOCATION_TYPE_DEVICE);
  CHECK(kReadAndWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(kWaitForWord == CU_STREAM_MEM_OP_WAIT_VALUE_32);
  CHECK(kWriteWord == CU_STREAM_MEM_OP_WRITE_VALUE_32);
  CHECK(kUntilEqual == CU_STREAM_WAIT_VALUE_EQ);
  CHECK(kFlushRemoteWrites == CU_STREAM_WAIT_VALUE_FLUSH);
}

}  // namespace sgtc::runtime::cuda

#endif
