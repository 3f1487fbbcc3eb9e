// When a launch ran, told by its own kernel.
//
// The last parameter of every kernel points to two words of its launch, or is null outside of
// traces. Each block lowers the first word to the time at which it begins, and each warp the second
// to the complement of the time at which it ends: both words begin as all ones, so one memset
// prepares those of all launches. Times are those of the GPU's global timer, nanoseconds in steps
// of 32 on an H200, the same for all its multiprocessors.
//
// Events of the driver would need no code, but one between two kernels costs 2.4 us on an H200, and
// one that no kernel waits for is recorded up to 50 us early or late.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Adds that to an optimised kernel of `declare_kernel`, whose work stays as it is.
void emit_stamps(llvm::Function* kernel);

/// A kernel without work, for stamps between what has none of its own, such as communications.
KernelSpec mark_kernel();
void emit_mark(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
