// LLVM IR that joins the partial results of the threads of a block.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/control_flow.h"
#include "passes/thread_mapping.h"

namespace sgtc::gpu {

/// Waits for all threads of the block.
void emit_barrier(llvm::IRBuilder<>& builder);

/// A special register of the thread ("tid", "ctaid", "nctaid"; dimension x) as i64.
IrValue* emit_register(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID id);

/// Joins values of the threads that share an item, with an order that depends on the mapping alone.
/// Every thread of the block has to come by, and every thread of an item gets the same bits.
class ThreadJoiner {
 public:
  /// `is_row`: the threads of an item are neighbours; else they lie items_per_block apart.
  ThreadJoiner(llvm::IRBuilder<>& builder, const ThreadMapping& mapping, bool is_row,
               IrValue* thread);

  /// `value` is a vector as Lanes holds it in registers.
  IrValue* join(Op reduction, DType dtype, IrValue* value);

 private:
  IrValue* join_warp(Op reduction, DType dtype, IrValue* value, int64_t width);
  IrValue* join_warps(Op reduction, DType dtype, IrValue* value);
  IrValue* join_apart(Op reduction, DType dtype, IrValue* value);
  IrValue* shuffle(IrValue* value, llvm::Intrinsic::ID id, IrValue* lane);
  IrValue* shuffle_word(IrValue* word, llvm::Intrinsic::ID id, IrValue* lane);
  void write(IrValue* slot, IrValue* value);
  IrValue* read(IrValue* slot, llvm::Type* type);
  IrValue* address(IrValue* slot, llvm::Type* type);
  IrValue* shared_memory();
  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  llvm::IRBuilder<>& builder_;
  ThreadMapping mapping_;
  bool is_row_;
  IrValue* thread_;
};

}  // namespace sgtc::gpu
