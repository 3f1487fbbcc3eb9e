// The regression program compiled for a GPU, over the stub of the driver.
#pragma once

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/cuda/stub_driver.h"
#include "runtime/regression_data.h"

namespace sgtc::runtime::cuda {

inline void stub_mark(void* const*, int64_t, int64_t, int64_t) {}

inline constexpr StubKernel kStubKernels[] = {{"forward", regression_forward, 5},
                                              {"backward", regression_backward, 4},
                                              {"update", regression_update, 7},
                                              {"evaluate", regression_evaluate, 5},
                                              {plan::kMarkKernel, stub_mark, 0, 0, 0}};
inline constexpr StubImage kStubImage = {kStubKernels, std::size(kStubKernels)};
inline const SgtcGpuImage kGpuImage = {reinterpret_cast<const unsigned char*>(&kStubImage),
                                       ".version 8.6\n.target sm_90a\n"};
inline const SgtcGpuKernel kGpuKernels[] = {{"forward", &kGpuImage},
                                            {"backward", &kGpuImage},
                                            {"update", &kGpuImage},
                                            {"evaluate", &kGpuImage},
                                            {plan::kMarkKernel, &kGpuImage}};

inline plan::Plan gpu_plan() {
  plan::Plan plan = regression_plan();
  plan.target = "sm_90a";
  plan.cpu_features.clear();
  plan.multiprocessors = 132;
  for (plan::Kernel& kernel : plan.kernels) {
    const bool is_small = kernel.symbol == "update" || kernel.symbol == "evaluate";
    kernel.launch.threads = is_small ? 32 : 128;
    if (kernel.symbol == "update") kernel.launch.shared_bytes = 1024;
  }
  return plan;
}

inline Program gpu_program(Program program) {
  program.kernels = nullptr;
  program.kernel_count = 0;
  program.gpu_kernels = kGpuKernels;
  program.gpu_kernel_count = std::size(kGpuKernels);
  return program;
}

/// The lines of a file that begin with one of the words.
inline std::vector<std::string> lines_of(const std::string& path,
                                         const std::vector<std::string>& words) {
  std::vector<std::string> found;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& word : words) {
      if (line.compare(0, word.size(), word) == 0) found.push_back(line);
    }
  }
  return found;
}

class StubRun {
 public:
  explicit StubRun(plan::Plan plan = gpu_plan()) : regression(24, std::move(plan)) {}

  /// Runs with these variables of the environment; the stub's log is fresh.
  ChildResult run(const std::vector<std::string>& arguments,
                  std::map<std::string, std::string> environment = {},
                  const StubImage& kernels = kStubImage) const {
    std::remove((folder() / "calls").c_str());
    environment.emplace("SGTC_CUDA_LIBRARY", SGTC_CUDA_STUB);
    environment.emplace("SGTC_STUB_LOG", folder() / "calls");
    return run_child([&] {
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      const SgtcGpuImage image = {reinterpret_cast<const unsigned char*>(&kernels), kGpuImage.ptx};
      std::vector<SgtcGpuKernel> table(std::begin(kGpuKernels), std::end(kGpuKernels));
      for (SgtcGpuKernel& kernel : table) kernel.image = &image;
      Program program = gpu_program(regression.program());
      program.gpu_kernels = table.data();
      return call_program(program, regression.arguments(arguments));
    });
  }

  /// The lines of the last run's log that begin with one of the words.
  std::vector<std::string> calls(const std::vector<std::string>& words) const {
    return lines_of(folder() / "calls", words);
  }

  const TemporaryFolder& folder() const { return regression.folder; }
  RegressionRun regression;
};

}  // namespace sgtc::runtime::cuda
