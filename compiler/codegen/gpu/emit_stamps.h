// When a launch ran, told by its own kernel.
//
// The last parameter of every kernel points to the stamps of its launch (plan/format.h), or is null
// outside of traces. The first thread of each block stamps its begin, and each warp its end: stamps
// are lowered from all ones, so one memset prepares those of all launches. The timer goes in steps
// of 32 ns on an H200 and is the same for all multiprocessors.
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
