// LLVM IR of kernels for GPUs that call the written ones in kernels/.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Defines the kernel of `declare_kernel` as a call of `spec.entry`, with the entry's shape as a constant. The call is marked to be inlined. The caller
/// defines the tile visitor where the entry needs one (emit_tile_visitor.h) and links the kernels'
/// bitcode.
void emit_anchor_kernel(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
