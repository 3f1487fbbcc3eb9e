// LLVM IR of the epilogues of anchors on GPUs.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "passes/kernel.h"

namespace sgtc::gpu {

/// Columns that a thread stores at once, and those that it prefetches; words that it reads ahead.
inline constexpr int64_t kVisitedColumns = 8;
inline constexpr int64_t kPrefetchedColumns = 64;
inline constexpr int64_t kTileWords = 16;

/// Defines what an anchor's kernel calls with its finished results (kernels/hopper/staging.h):
///   void sgtc_tile_store(ptr args, i64 batch, i64 row, i64 column, <8 x float> values, i64 lanes)
/// It evaluates the kernel's nest at `lanes` columns from `column`, a multiple of 8, with the
/// anchor's result given, and stores them. `lanes` is 0 to 8; 8 columns are one access where the
/// rows' strides allow it. `args` holds a pointer to global memory per argument of the spec, a
/// multiple of kArgumentAlignment. Always inlined.
void emit_tile_store(llvm::Module& module, const KernelSpec& spec);

/// Define the two halves of sgtc_tile_store for eight whole columns:
///   void sgtc_tile_load(ptr args, i64 batch, i64 row, i64 column, ptr words)
///   void sgtc_tile_store_loaded(ptr args, i64 batch, i64 row, i64 column, <8 x float> values,
///                               ptr words)
/// The first reads consecutive elements into kTileWords words, as many as have room there.
void emit_tile_load(llvm::Module& module, const KernelSpec& spec);
void emit_tile_store_loaded(llvm::Module& module, const KernelSpec& spec);

/// Defines void sgtc_tile_prefetch(ptr args, i64 batch, i64 row, i64 column), which brings what the
/// stores of 64 columns of a row read into the L2 cache, as far as it differs from row to row.
void emit_tile_prefetch(llvm::Module& module, const KernelSpec& spec);

}  // namespace sgtc::gpu
