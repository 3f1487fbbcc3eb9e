// LLVM IR of the tile visitors of anchors whose results have layouts (attention).
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Defines sgtc_tile_store, and sgtc_tile_store_second for a second visited result
/// (kernels/hopper/staging.h), for results [batch, head, row, column] of bfloat16 whose batch in
/// the visitor is batch * heads + head. They store the eight columns at once, to where the spec's
/// layouts say, or nothing for lanes == 0. Always inlined.
void emit_strided_stores(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
