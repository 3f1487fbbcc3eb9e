// Code of the kernels that are written, not generated: calls into the bitcode of kernels/ with all
// shapes as constants.
//
// Contract with the caller, who links the kernels' bitcode into the module afterwards:
// - All sgtc_… functions that are declared here must be linked in and made internal.
// - Where anchor_visits_tiles(spec.anchor, type of result 0) holds, the module must define
//     void sgtc_tile_store(ptr args, i64 batch, i64 row, i64 column, <16 x float> values, i64
//     lanes)
//   which stores elements (batch, row, column … column + lanes - 1) of the kernel's results; lanes
//   is 1 to 16 and the other lanes of `values` are unspecified. `args` is the kernel's own
//   argument. It should be always inlined. Other kernels never refer to it.
// - The call of the kernel's entry is marked to be inlined; after that, optimisation at level 2
//   specialises the code.
#pragma once

#include <llvm/IR/Module.h>

#include "passes/kernel.h"

namespace sgtc {

/// Defines `void symbol(ptr args, i64 block_begin, i64 block_end, i64 micro_batch)` for an anchor.
/// `wide_vectors`: the target has 32 vector registers of 512 bits (x86-64-v4); the bits of the
/// results do not depend on it. Throws Error when the kernels have no instance for the types.
void emit_anchor_kernel(llvm::Module& module, const KernelSpec& spec, bool wide_vectors);

}  // namespace sgtc
