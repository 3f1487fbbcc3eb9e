// The program's GPU kernels, loaded into the driver.
#pragma once

#include <string>
#include <unordered_map>

#include "cuda/driver.h"
#include "program.h"

namespace sgtc::runtime::cuda {

struct Kernel {
  Function function = nullptr;
  unsigned threads = 0;  // per block
  unsigned shared_bytes = 0;
};

class Kernels {
 public:
  /// Both must outlive this.
  Kernels(const Driver& driver, const Program& program) : driver_(driver), program_(program) {}

  /// Loads what the kernel needs at its first use. Dies if the program has no such kernel or the
  /// driver cannot load it.
  const Kernel& find(const std::string& symbol);

 private:
  Module load(const SgtcGpuImage& image);
  Module compile(const SgtcGpuImage& image);

  const Driver& driver_;
  const Program& program_;
  std::unordered_map<const SgtcGpuImage*, Module> modules_;
  std::unordered_map<std::string, Kernel> kernels_;
};

}  // namespace sgtc::runtime::cuda
