// LLVM IR of loop kernels for GPUs.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "passes/kernel.h"
#include "passes/thread_mapping.h"

namespace sgtc::gpu {

/// Defines the kernel of `declare_kernel` with one pointer to global memory per argument of the
/// spec, a multiple of kArgumentAlignment. It has to be launched with exactly `spec.launch.threads` threads per block and any number of blocks in dimension x. Calls
/// functions of the kernels' bitcode by name.
void emit_loop_kernel(llvm::Module& module, const KernelSpec& spec);

/// Defines the function `void name(ptr argument…, i64 micro_batch, i64 block, i64 items, i64
/// steps)` that does the work of one block, for loops whose number of items is known at run time,
/// and with `varies_in_steps` that of steps. Those of `mapping` are the largest.
llvm::Function* emit_loop_body(llvm::Module& module, const std::string& name,
                               const KernelSpec& spec, const ThreadMapping& mapping,
                               bool varies_in_steps);

}  // namespace sgtc::gpu
