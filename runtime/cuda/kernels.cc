#include "cuda/kernels.h"

#include <string_view>

#include "failure.h"
#include "plan_memory.h"

namespace sgtc::runtime::cuda {
namespace {

const SgtcGpuKernel* find_kernel(const Program& program, const std::string& symbol) {
  for (int64_t i = 0; i < program.gpu_kernel_count; ++i) {
    if (symbol == program.gpu_kernels[i].symbol) return &program.gpu_kernels[i];
  }
  die_of_bad_plan("there is no kernel " + symbol);
}

// "8.0" of ".version 8.0".
std::string version_of_ptx(std::string_view ptx) {
  constexpr std::string_view kDirective = ".version ";
  const size_t start = ptx.find(kDirective);
  if (start == std::string_view::npos) return "unknown";
  const std::string_view rest = ptx.substr(start + kDirective.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

}  // namespace

const Kernel& Kernels::find(const std::string& symbol) {
  const auto found = kernels_.find(symbol);
  if (found != kernels_.end()) return found->second;
  const SgtcGpuKernel* code = find_kernel(program_, symbol);
  Kernel& kernel = kernels_[symbol];
  kernel.threads = static_cast<unsigned>(code->threads);
  kernel.shared_bytes = static_cast<unsigned>(code->shared_bytes);
  driver_.check(
      driver_.functions.cuModuleGetFunction(&kernel.function, load(*code->image), code->symbol),
      ("cuModuleGetFunction for " + symbol).c_str());
  SGTC_CUDA(driver_, cuFuncSetAttribute(kernel.function, kMaxDynamicSharedBytes,
                                        static_cast<int>(kernel.shared_bytes)));
  return kernel;
}

// A cubin runs on the architecture that it was assembled for; on others the driver compiles PTX.
Module Kernels::load(const SgtcGpuImage& image) {
  Module& module = modules_[&image];
  if (module) return module;
  if (image.cubin) {
    const int result =
        driver_.functions.cuModuleLoadDataEx(&module, image.cubin, 0, nullptr, nullptr);
    if (result == kSuccess) return module;
    if (result != kNoBinaryForGpu || !image.ptx) driver_.check(result, "cuModuleLoadDataEx(cubin)");
  }
  return module = compile(image);
}

Module Kernels::compile(const SgtcGpuImage& image) {
  char log[2048] = {};
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  Module module = nullptr;
  const int result = driver_.functions.cuModuleLoadDataEx(&module, image.ptx, 2, options, values);
  if (result == kUnsupportedPtxVersion || result == kNoPtxCompiler) {
    die(driver_.subject(),
        "the driver (CUDA " + driver_.version() + ") cannot compile the program's PTX of version " +
            version_of_ptx(image.ptx) + ": " + driver_.text_of(result),
        "install a newer driver, or compile the program where ptxas is found");
  }
  if (result != kSuccess) {
    die(driver_.subject(), "cannot compile the program's PTX: " + driver_.text_of(result) +
                               (log[0] ? std::string(": ") + log : std::string()));
  }
  return module;
}

}  // namespace sgtc::runtime::cuda
