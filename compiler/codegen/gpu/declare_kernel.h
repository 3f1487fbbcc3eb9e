// The signature of GPU kernels.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// The address space of global memory.
inline constexpr unsigned kGlobalMemory = 1;

/// Declares the kernel `void symbol(ptr argument…, i64 micro_batch, ptr tensor_map…, ptr stamps)`
/// for blocks of `spec.launch.threads`, or `void symbol(ptr table, i64 micro_batch, ptr stamps)` if
/// it is indirect; for stamps see emit_stamps.h. Its pointers are to global memory, with the
/// attributes of `set_argument_attributes`.
llvm::Function* declare_kernel(llvm::Module& module, const KernelSpec& spec);

/// Marks the first parameters of `function`, which are the arguments of `spec`, as multiples of
/// kArgumentAlignment that do not overlap but where KernelArgument::may_alias says so.
void set_argument_attributes(llvm::Function* function, const KernelSpec& spec);

}  // namespace sgtc::gpu
