#include "cuda/kernels.h"

#include <cstdint>
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

LaunchSettings::LaunchSettings(const plan::Kernel& kernel, Stream stream) {
  const plan::Launch& launch = kernel.launch;
  constexpr int64_t kMaxBlocks = INT32_MAX;
  constexpr int64_t kMaxThreads = 1024;
  if (kernel.blocks < 1 || kernel.blocks > kMaxBlocks || launch.threads < 1 ||
      launch.threads > kMaxThreads || launch.shared_bytes < 0 || launch.shared_bytes > kMaxBlocks ||
      launch.cluster < 1 || launch.cluster > kernel.blocks) {
    die_of_bad_plan(format("kernel %s has %ld blocks of %ld threads", kernel.symbol.c_str(),
                           static_cast<long>(kernel.blocks), static_cast<long>(launch.threads)));
  }
  configuration_ = {{static_cast<unsigned>(kernel.blocks), 1, 1},
                    {static_cast<unsigned>(launch.threads), 1, 1},
                    static_cast<unsigned>(launch.shared_bytes),
                    stream,
                    &cluster_,
                    0};
  if (launch.cluster == 1) return;
  cluster_ = {kClusterDimension, {{static_cast<unsigned>(launch.cluster), 1, 1}}};
  configuration_.attribute_count = 1;
}

Function Kernels::find(const plan::Kernel& kernel) {
  Function& function = functions_[kernel.symbol];
  if (!function) function = load(kernel);
  return function;
}

Function Kernels::load(const plan::Kernel& kernel) {
  const SgtcGpuKernel* code = find_kernel(program_, kernel.symbol);
  Function function = nullptr;
  driver_.check(driver_.functions.cuModuleGetFunction(&function, load(*code->image), code->symbol),
                ("cuModuleGetFunction for " + kernel.symbol).c_str());
  SGTC_CUDA(driver_, cuFuncSetAttribute(function, kMaxDynamicSharedBytes,
                                        static_cast<int>(kernel.launch.shared_bytes)));
  if (kernel.launch.resident) check_room(kernel, function);
  return function;
}

void Kernels::check_room(const plan::Kernel& kernel, Function function) const {
  const LaunchSettings settings(kernel);
  const LaunchConfiguration& configuration = settings.configuration();
  int64_t room = 0;
  int count = 0;
  if (settings.cluster()) {
    SGTC_CUDA(driver_, cuOccupancyMaxActiveClusters(&count, function, &configuration));
    room = count * kernel.launch.cluster;
  } else {
    SGTC_CUDA(driver_, cuOccupancyMaxActiveBlocksPerMultiprocessor(
                           &count, function, static_cast<int>(configuration.block[0]),
                           configuration.shared_bytes));
    room = int64_t{count} * gpu_.multiprocessors;
  }
  if (kernel.blocks <= room) return;
  die(driver_.subject(),
      format("has room for %ld blocks of kernel %s at once, which needs %ld; the program was "
             "compiled for %ld multiprocessors, this GPU has %d",
             static_cast<long>(room), kernel.symbol.c_str(), static_cast<long>(kernel.blocks),
             static_cast<long>(plan_.multiprocessors), gpu_.multiprocessors),
      "run it on a GPU of the kind that it was compiled for");
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
