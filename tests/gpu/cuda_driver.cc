#include "gpu/cuda_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

namespace sgtc::testing {
namespace {

constexpr int kSkipped = 77;

// Own declarations of what is used of the driver; values and layouts are its binary interface.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    struct {
      unsigned x, y, z;
    } cluster;
    char bytes[64];
  };
};
struct LaunchConfiguration {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
constexpr int kClusterDimension = 4;
constexpr int kMaxDynamicSharedBytes = 8;
constexpr int kMultiprocessorCount = 16;
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kBFloat16 = 9;
constexpr int kSwizzle128 = 3;
constexpr int kPromote256 = 3;

struct Functions {
  int (*cuInit)(unsigned);
  int (*cuGetErrorString)(int, const char**);
  int (*cuDeviceGet)(int*, int);
  int (*cuDeviceGetName)(char*, int, int);
  int (*cuDeviceGetAttribute)(int*, int, int);
  int (*cuDevicePrimaryCtxRetain)(void**, int);
  int (*cuCtxSetCurrent)(void*);
  int (*cuCtxSynchronize)();
  int (*cuMemAlloc_v2)(DeviceAddress*, size_t);
  int (*cuMemFree_v2)(DeviceAddress);
  int (*cuMemsetD32_v2)(DeviceAddress, unsigned, size_t);
  int (*cuMemcpyHtoD_v2)(DeviceAddress, const void*, size_t);
  int (*cuMemcpyDtoH_v2)(void*, DeviceAddress, size_t);
  int (*cuMemcpyDtoD_v2)(DeviceAddress, DeviceAddress, size_t);
  int (*cuModuleLoadData)(void**, const void*);
  int (*cuModuleGetFunction)(void**, void*, const char*);
  int (*cuFuncSetAttribute)(void*, int, int);
  int (*cuLaunchKernelEx)(const LaunchConfiguration*, void*, void**, void**);
  int (*cuEventCreate)(void**, unsigned);
  int (*cuEventDestroy_v2)(void*);
  int (*cuEventRecord)(void*, void*);
  int (*cuEventSynchronize)(void*);
  int (*cuEventElapsedTime)(float*, void*, void*);
  int (*cuTensorMapEncodeTiled)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                                const uint32_t*, const uint32_t*, int, int, int, int);
};
Functions cuda;

void check(int result, const char* call) {
  if (result == 0) return;
  const char* text = "unknown error";
  cuda.cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s (%d)\n", call, text, result);
  std::exit(1);
}
#define CHECK_CUDA(call) check(cuda.call, #call)

[[noreturn]] void skip(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::exit(kSkipped);
}

template <typename Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 has no %s; a newer driver is needed\n", name);
    std::exit(1);
  }
}

void load_functions() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) skip("no CUDA driver (libcuda.so.1)");
#define FIND(name) find(library, cuda.name, #name)
  FIND(cuInit), FIND(cuGetErrorString), FIND(cuDeviceGet), FIND(cuDeviceGetName);
  FIND(cuDeviceGetAttribute), FIND(cuDevicePrimaryCtxRetain), FIND(cuCtxSetCurrent);
  FIND(cuCtxSynchronize), FIND(cuMemAlloc_v2), FIND(cuMemFree_v2), FIND(cuMemsetD32_v2);
  FIND(cuMemcpyHtoD_v2), FIND(cuMemcpyDtoH_v2), FIND(cuMemcpyDtoD_v2), FIND(cuModuleLoadData);
  FIND(cuModuleGetFunction), FIND(cuFuncSetAttribute), FIND(cuLaunchKernelEx);
  FIND(cuEventCreate), FIND(cuEventDestroy_v2), FIND(cuEventRecord), FIND(cuEventSynchronize);
  FIND(cuEventElapsedTime), FIND(cuTensorMapEncodeTiled);
#undef FIND
}

int attribute(int device, int which) {
  int value = 0;
  CHECK_CUDA(cuDeviceGetAttribute(&value, which, device));
  return value;
}

void* load_module(const std::string& file) {
  static std::map<std::string, void*> modules;
  void*& module = modules[file];
  if (module != nullptr) return module;
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(stream), {}};
  if (image.empty()) {
    std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
    std::exit(1);
  }
  CHECK_CUDA(cuModuleLoadData(&module, image.data()));
  return module;
}

}  // namespace

Device open_hopper_or_skip() {
  load_functions();
  if (cuda.cuInit(0) != 0) skip("the CUDA driver finds no GPU");
  int number = 0;
  CHECK_CUDA(cuDeviceGet(&number, 0));
  char name[128] = {};
  CHECK_CUDA(cuDeviceGetName(name, sizeof(name) - 1, number));
  const Device device = {attribute(number, kMultiprocessorCount), attribute(number, kMajor),
                         attribute(number, kMinor), name};
  if (device.major != 9 || device.minor != 0) skip(device.name + " is no Hopper GPU");
  void* context = nullptr;
  CHECK_CUDA(cuDevicePrimaryCtxRetain(&context, number));
  CHECK_CUDA(cuCtxSetCurrent(context));
  return device;
}

DeviceMemory::DeviceMemory(size_t bytes) : bytes_(bytes) {
  CHECK_CUDA(cuMemAlloc_v2(&address_, bytes == 0 ? 4 : bytes));
}
DeviceMemory::~DeviceMemory() { CHECK_CUDA(cuMemFree_v2(address_)); }

void DeviceMemory::set(uint32_t word) { CHECK_CUDA(cuMemsetD32_v2(address_, word, bytes_ / 4)); }
void DeviceMemory::write(const void* from, size_t bytes) {
  CHECK_CUDA(cuMemcpyHtoD_v2(address_, from, bytes));
}
void DeviceMemory::read(void* to, size_t bytes) const {
  CHECK_CUDA(cuMemcpyDtoH_v2(to, address_, bytes));
}
void DeviceMemory::write_repeated(const std::string& pattern, size_t bytes) {
  for (size_t at = 0; at < bytes; at += pattern.size()) {
    const size_t part = std::min(pattern.size(), bytes - at);
    CHECK_CUDA(cuMemcpyHtoD_v2(address_ + at, pattern.data(), part));
  }
}
void DeviceMemory::copy_from(const DeviceMemory& other) {
  CHECK_CUDA(cuMemcpyDtoD_v2(address_, other.address(), bytes_));
}

Kernel::Kernel(const std::string& file, const std::string& name) {
  CHECK_CUDA(cuModuleGetFunction(&function_, load_module(file), name.c_str()));
}

void Kernel::start_with_all(const Launch& launch, void** parameters) const {
  const auto shared = static_cast<int>(launch.shared_bytes);
  CHECK_CUDA(cuFuncSetAttribute(function_, kMaxDynamicSharedBytes, shared));
  LaunchAttribute cluster = {};
  cluster.id = kClusterDimension;
  cluster.cluster = {launch.cluster, 1, 1};
  const LaunchConfiguration configuration = {
      {launch.blocks, 1, 1},       {launch.threads, 1, 1}, launch.shared_bytes, nullptr, &cluster,
      launch.cluster > 1 ? 1u : 0u};
  CHECK_CUDA(cuLaunchKernelEx(&configuration, function_, parameters, nullptr));
}

void synchronize_device() { CHECK_CUDA(cuCtxSynchronize()); }

Stopwatch::Stopwatch() {
  CHECK_CUDA(cuEventCreate(&begin_, 0));
  CHECK_CUDA(cuEventCreate(&end_, 0));
}
Stopwatch::~Stopwatch() {
  CHECK_CUDA(cuEventDestroy_v2(begin_));
  CHECK_CUDA(cuEventDestroy_v2(end_));
}
void Stopwatch::start() { CHECK_CUDA(cuEventRecord(begin_, nullptr)); }
double Stopwatch::stop() {
  CHECK_CUDA(cuEventRecord(end_, nullptr));
  CHECK_CUDA(cuEventSynchronize(end_));
  float milliseconds = 0;
  CHECK_CUDA(cuEventElapsedTime(&milliseconds, begin_, end_));
  return 1e-3 * static_cast<double>(milliseconds);
}

hopper::TensorMap encode_tensor_map(DeviceAddress address, const TensorBox& tensor) {
  hopper::TensorMap map = {};
  const std::vector<uint64_t> sizes(tensor.sizes.begin(), tensor.sizes.end());
  std::vector<uint64_t> strides;
  for (const int64_t stride : tensor.strides) strides.push_back(2 * static_cast<uint64_t>(stride));
  std::vector<uint32_t> box(sizes.size(), 1), steps(sizes.size(), 1);
  box[0] = tensor.box[0];
  box[1] = tensor.box[1];
  CHECK_CUDA(cuTensorMapEncodeTiled(&map, kBFloat16, static_cast<uint32_t>(sizes.size()),
                                    reinterpret_cast<void*>(address), sizes.data(), strides.data(),
                                    box.data(), steps.data(), 0, kSwizzle128, kPromote256, 0));
  return map;
}

}  // namespace sgtc::testing
