// LLVM IR of the epilogues of anchors.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc {

/// Defines the function that an anchor's kernel calls with its finished results (anchors.h):
///   void sgtc_tile_store(ptr args, i64 batch, i64 row, i64 column, <16 x float> values, i64 lanes)
/// It evaluates the kernel's nest at 16 consecutive columns with the anchor's result given, and
/// stores the first `lanes` of them. Always inlined.
void emit_tile_store(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc
