// From kernel specs to the code of GPUs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/gpu/gpu_target.h"
#include "passes/kernel.h"

namespace sgtc::gpu {

struct GpuKernel {
  std::string symbol;
  std::string ptx;
  std::string cubin;    // empty without an assembler
  std::string report;   // the assembler's, of registers and spills
  std::string llvm_ir;  // optimised; only if asked for
};

struct GpuCompileOptions {
  std::string target;  // one of gpu_targets()
  std::string ptxas;   // path of the assembler; empty: PTX alone
  int jobs = 1;
  bool keep_llvm_ir = false;
};

/// Whether there is GPU code for the kernel: loops have, anchors where kernels/ fits.
bool has_gpu_code(const KernelSpec& spec);

/// Compiles each symbol once, in the order of their first spec, on up to `jobs` threads; all specs
/// must have GPU code. The result does not depend on `jobs`. Throws Error where ptxas fails.
std::vector<GpuKernel> compile_gpu_kernels(const std::vector<KernelSpec>& specs,
                                           const GpuCompileOptions& options);

}  // namespace sgtc::gpu
