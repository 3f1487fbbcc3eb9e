// LLVM IR of kernels that compute several loops.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Defines the kernel of `spec.merged` (passes/gpu/merge_loops.h), with the launch of
/// `emit_loop_kernel` and a table of its arguments.
void emit_merged_loops(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
