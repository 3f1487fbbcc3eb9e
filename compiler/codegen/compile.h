// From kernel specs to machine code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "passes/kernel.h"

namespace sgtc {

struct CompiledKernel {
  std::string symbol;
  std::string object;    // ELF relocatable object that defines `symbol` and refers to nothing
  std::string llvm_ir;   // optimised; only if asked for
  std::string assembly;  // only if asked for
};

struct CompileOptions {
  Target target;
  int jobs = 1;
  bool keep_llvm_ir = false;
  bool keep_assembly = false;
};

/// Compiles each symbol once, in the order of their first spec, one LLVM module per kernel on up to
/// `jobs` threads. The result does not depend on `jobs`. Throws Error when the written kernels have
/// no instance for an anchor's types.
std::vector<CompiledKernel> compile_kernels(const std::vector<KernelSpec>& specs,
                                            const CompileOptions& options);

/// The optimised module of one kernel: only `spec.symbol` is visible, and everything that it calls
/// is in it.
std::unique_ptr<llvm::Module> build_kernel_module(llvm::LLVMContext& context,
                                                  const KernelSpec& spec, const Target& target,
                                                  llvm::TargetMachine& machine);

}  // namespace sgtc
