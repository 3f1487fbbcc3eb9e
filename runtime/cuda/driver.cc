#include "cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

std::string library_name() {
  const char* other = std::getenv("SGTC_CUDA_LIBRARY");
  return other && *other ? other : kLibrary;
}

template <typename Pointer>
void find(void* library, Pointer& function, const char* name) {
  function = reinterpret_cast<Pointer>(dlsym(library, name));
  if (function) return;
  die("CUDA driver", std::string("has no function ") + name,
      "this program needs a driver for CUDA 12.0 or newer");
}

// Results that any later call may give after a kernel has failed: illegal addresses and
// instructions, time-outs, traps.
bool is_kernel_fault(int result) {
  constexpr int kFaults[] = {700, 702, 710, 714, 715, 716, 717, 718, 719};
  return std::find(std::begin(kFaults), std::end(kFaults), result) != std::end(kFaults);
}

}  // namespace

Driver::Driver() {
  // Before the driver reads it: branches of a graph that wait must not block others.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  load();
  const int result = functions.cuInit(0);
  if (result == kNoDevice) {
    die("GPU", "the CUDA driver finds none",
        "run on a machine with a GPU, look at CUDA_VISIBLE_DEVICES, or compile with --target cpu");
  }
  check(result, "cuInit(0)");
}

void Driver::load() {
  const std::string name = library_name();
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    die("CUDA driver", "cannot be loaded: " + std::string(dlerror()),
        "run on a machine with an NVIDIA driver, or compile with --target cpu");
  }
#define SGTC_CUDA_FIND(name, parameters) find(library, functions.name, #name);
  SGTC_CUDA_FUNCTIONS(SGTC_CUDA_FIND)
#undef SGTC_CUDA_FIND
}

std::string Driver::version() const {
  int version = 0;
  check(functions.cuDriverGetVersion(&version), "cuDriverGetVersion(&version)");
  return format("%d.%d", version / 1000, version % 1000 / 10);
}

std::string Driver::text_of(int result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  functions.cuGetErrorName(result, &name);
  functions.cuGetErrorString(result, &text);
  return format("%s (%s, %d)", text ? text : "unknown error", name ? name : "unnamed", result);
}

void Driver::check(int result, const char* call) const {
  if (result == kSuccess) return;
  if (is_kernel_fault(result)) {
    if (fault_hook_) fault_hook_();
    die(subject_, "a kernel failed: " + text_of(result),
        "run again with SGTC_STEPWISE=1 to learn which");
  }
  die(subject_, std::string(call) + " failed: " + text_of(result));
}

}  // namespace sgtc::runtime::cuda
