#include "cuda/gpu.h"

#include <cstdlib>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

int choose_ordinal(int count, int64_t local_rank, int64_t local_size) {
  if (local_size <= count) return static_cast<int>(local_rank);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (count == 1 && visible && *visible) return 0;
  die("GPU",
      format("%ld ranks run on this host, GPUs that are visible: %d", static_cast<long>(local_size),
             count),
      "start no more ranks than GPUs on a host");
}

// Programs for sm_90a run on compute capability 9.0 alone, those for sm_80 on 8.0 and newer.
bool fits(const Gpu& gpu, const std::string& target) {
  const int found = gpu.major * 10 + gpu.minor;
  const int wanted = std::atoi(target.c_str() + std::string("sm_").size());
  return target.back() == 'a' ? found == wanted : found >= wanted;
}

}  // namespace

Gpu choose_gpu(Driver& driver, const std::string& target, int64_t local_rank, int64_t local_size) {
  int count = 0;
  SGTC_CUDA(driver, cuDeviceGetCount(&count));
  Gpu gpu;
  gpu.ordinal = choose_ordinal(count, local_rank, local_size);
  int device = 0;
  SGTC_CUDA(driver, cuDeviceGet(&device, gpu.ordinal));
  char name[128] = {};
  SGTC_CUDA(driver, cuDeviceGetName(name, sizeof name - 1, device));
  gpu.name = name;
  driver.set_subject(format("GPU %d (%s)", gpu.ordinal, name));
  SGTC_CUDA(driver, cuDeviceGetAttribute(&gpu.major, kMajorVersion, device));
  SGTC_CUDA(driver, cuDeviceGetAttribute(&gpu.minor, kMinorVersion, device));
  if (!fits(gpu, target)) {
    die(driver.subject(),
        format("is of architecture sm_%d%d, the program was compiled for %s", gpu.major, gpu.minor,
               target.c_str()),
        "run it on another GPU, or compile with another --target");
  }
  SGTC_CUDA(driver, cuDeviceGetAttribute(&gpu.multiprocessors, kMultiprocessors, device));
  SGTC_CUDA(driver, cuDevicePrimaryCtxRetain(&gpu.context, device));
  SGTC_CUDA(driver, cuCtxSetCurrent(gpu.context));
  return gpu;
}

}  // namespace sgtc::runtime::cuda
