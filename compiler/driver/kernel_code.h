// The kernels of all plans of an executable, from specs to code.
#pragma once

#include <string>
#include <vector>

#include "codegen/compile.h"
#include "codegen/gpu/compile.h"
#include "driver/options.h"
#include "link/executable.h"
#include "passes/kernelized_graph.h"
#include "support/diagnostics.h"
#include "support/sha256.h"

namespace sgtc {

/// Compiled kernels: of one kind of device, the target's.
struct KernelCode {
  std::vector<CompiledKernel> cpu;
  std::vector<gpu::GpuKernel> gpu;
};

/// Whether an executable is wanted, or `what` is to be printed.
bool makes_executable(const Options& options);
bool emits(const Options& options, const std::string& what);

/// Refuses forms of code that the target does not have. Throws Error.
void check_code_options(const Options& options);

/// Finds kernels that a GPU has no code for. Errors name the ONNX node, the operator and its types.
void check_gpu_code(const KernelizedGraph& program, Diagnostics& diagnostics);

/// Compiles each kernel once and keeps the texts that `--emit` asks for. `cpu` is the machine of a
/// program for CPUs. Warns of kernels that a GPU's assembler made slower than they are written.
KernelCode compile_all_kernels(const std::vector<KernelSpec>& specs, const Options& options,
                               const Target& cpu, Diagnostics& diagnostics);

/// What `--emit=llvm-ir`, `asm` or `ptx` print.
std::string code_text(const KernelCode& code, const std::string& what);

/// Adds the code to an executable, and what makes it differ from others to `fingerprint`.
void add_code(const KernelCode& code, ExecutableInput& input, Sha256& fingerprint);

}  // namespace sgtc
