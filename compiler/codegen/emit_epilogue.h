// LLVM IR of the epilogues of anchors.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/nest_emitter.h"
#include "passes/kernel.h"

namespace sgtc {

/// Defines the function that an anchor's kernel calls with its finished results (anchors.h):
///   void sgtc_tile_store(ptr args, i64 batch, i64 row, i64 column, <16 x float> values, i64 lanes)
/// It evaluates the kernel's nest at 16 consecutive columns with the anchor's result given, and
/// stores the first `lanes` of them. Always inlined.
void emit_tile_store(llvm::Module& module, const KernelSpec& spec);

/// Defines what the kernel calls some time before it:
///   void sgtc_tile_prefetch(ptr args, i64 batch, i64 row, i64 column)
/// It prefetches to the second-level cache what the nest loads and stores at 16 consecutive
/// columns.
void emit_tile_prefetch(llvm::Module& module, const KernelSpec& spec);

/// Declares the function `name` of (ptr args, i64 batch, i64 row, i64 column, `further`…), which is
/// always inlined, and opens its body.
llvm::Function* define_visitor(llvm::Module& module, const char* name,
                               const std::vector<llvm::Type*>& further);

/// Whether the columns that the anchor's kernel visits begin at multiples of the lanes.
bool visits_aligned_columns(Op anchor);

/// Sets the coordinates of an epilogue's position to a row of the anchor's result.
void set_tile_row(llvm::IRBuilder<>& builder, const LoopNest& nest, IrValue* batch, IrValue* row,
                  LanePosition& position);

/// Evaluates and does all stores of an epilogue at the emitter's position.
void store_tile_lanes(NestEmitter& emitter, const LoopNest& nest);

}  // namespace sgtc
