// The signature of GPU kernels.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/thread_mapping.h"
#include "passes/kernel.h"

namespace sgtc::gpu {

/// Declares the kernel `void symbol(ptr argument…, i64 micro_batch)` for blocks of
/// `mapping.threads`. Its pointers are to global memory, multiples of kArgumentAlignment, and
/// marked as not overlapping but where KernelArgument::may_alias says so.
llvm::Function* declare_kernel(llvm::Module& module, const KernelSpec& spec,
                               const ThreadMapping& mapping);

}  // namespace sgtc::gpu
