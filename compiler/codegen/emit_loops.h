// LLVM IR of loop kernels.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc {

/// Defines `void symbol(ptr args, i64 begin, i64 end, i64 micro_batch)`, which computes the blocks
/// [begin, end) of a loop kernel. Calls functions of the kernels' bitcode by name.
void emit_loop_kernel(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc
