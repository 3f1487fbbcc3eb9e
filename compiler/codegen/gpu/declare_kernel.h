// The signature of GPU kernels.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// The address space of global memory.
inline constexpr unsigned kGlobalMemory = 1;

/// Declares the kernel `void symbol(ptr argument…, i64 micro_batch, ptr tensor_map…)` for blocks of
/// `spec.launch.threads`. Its pointers are to global memory. Arguments are multiples of
/// kArgumentAlignment and marked as not overlapping but where KernelArgument::may_alias says so.
llvm::Function* declare_kernel(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
