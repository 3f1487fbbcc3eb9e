// LLVM IR of loop kernels for GPUs.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Defines the kernel `void symbol(ptr argument…, i64 micro_batch)` with one pointer to global
/// memory per argument of the spec, a multiple of kArgumentAlignment. It has to be launched with
/// exactly `spec.launch.threads` threads per block and any number of blocks in dimension x. Calls
/// functions of the kernels' bitcode by name.
void emit_loop_kernel(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
