#include "codegen/gpu/join_threads.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "codegen/emit_compute.h"

namespace sgtc::gpu {
namespace {

// What a value has in shared memory: a truth value is a byte.
llvm::Type* shared_type(llvm::Type* type) {
  if (!type->isIntOrIntVectorTy(1)) return type;
  return type->getWithNewType(llvm::Type::getInt8Ty(type->getContext()));
}

}  // namespace

void emit_barrier(llvm::IRBuilder<>& builder) {
  builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

IrValue* emit_register(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID id) {
  return builder.CreateZExt(builder.CreateIntrinsic(id, {}, {}), builder.getInt64Ty());
}

ThreadJoiner::ThreadJoiner(llvm::IRBuilder<>& builder, const ThreadMapping& mapping, bool is_row,
                           IrValue* thread)
    : builder_(builder), mapping_(mapping), is_row_(is_row), thread_(thread) {}

IrValue* ThreadJoiner::join(Op reduction, DType dtype, IrValue* value) {
  if (mapping_.slices == 1) return value;
  if (!is_row_) return join_apart(reduction, dtype, value);
  value = join_warp(reduction, dtype, value, std::min(mapping_.slices, kWarp));
  if (mapping_.slices > kWarp) return join_warps(reduction, dtype, value);
  IrValue* first = builder_.CreateAnd(thread_, i64(kWarp - mapping_.slices));
  return shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_idx_i32, first);
}

// The tree: thread i takes in thread i ^ width / 2, then width / 4 … 1.
IrValue* ThreadJoiner::join_warp(Op reduction, DType dtype, IrValue* value, int64_t width) {
  for (int64_t distance = width / 2; distance > 0; distance /= 2) {
    IrValue* other = shuffle(value, llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, i64(distance));
    value = emit_combine(builder_, reduction, dtype, value, other);
  }
  return value;
}

// The results of the warps of an item, one after the other.
IrValue* ThreadJoiner::join_warps(Op reduction, DType dtype, IrValue* value) {
  emit_barrier(builder_);
  IrValue* is_first = builder_.CreateICmpEQ(builder_.CreateAnd(thread_, i64(kWarp - 1)), i64(0));
  emit_if(builder_, is_first, [&] { write(builder_.CreateUDiv(thread_, i64(kWarp)), value); });
  emit_barrier(builder_);
  const int64_t warps = mapping_.slices / kWarp;
  IrValue* item = builder_.CreateUDiv(thread_, i64(mapping_.slices));
  IrValue* begin = builder_.CreateMul(item, i64(warps));
  IrValue* sum = read(begin, value->getType());
  for (int64_t warp = 1; warp < warps; ++warp) {
    IrValue* other = read(builder_.CreateAdd(begin, i64(warp)), value->getType());
    sum = emit_combine(builder_, reduction, dtype, sum, other);
  }
  return sum;
}

// The same tree through shared memory.
IrValue* ThreadJoiner::join_apart(Op reduction, DType dtype, IrValue* value) {
  const int64_t apart = mapping_.items_per_block();
  emit_barrier(builder_);
  write(thread_, value);
  emit_barrier(builder_);
  for (int64_t slices = mapping_.slices / 2; slices > 0; slices /= 2) {
    emit_if(builder_, builder_.CreateICmpULT(thread_, i64(slices * apart)), [&] {
      IrValue* mine = read(thread_, value->getType());
      IrValue* other = read(builder_.CreateAdd(thread_, i64(slices * apart)), value->getType());
      write(thread_, emit_combine(builder_, reduction, dtype, mine, other));
    });
    emit_barrier(builder_);
  }
  return read(builder_.CreateURem(thread_, i64(apart)), value->getType());
}

// Lanes travel as words of 32 bits.
IrValue* ThreadJoiner::shuffle(IrValue* value, llvm::Intrinsic::ID id, IrValue* lane) {
  auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
  const unsigned bits = type->getScalarSizeInBits();
  llvm::Type* integer = builder_.getIntNTy(bits);
  IrValue* target = builder_.CreateTrunc(lane, builder_.getInt32Ty());
  IrValue* result = llvm::PoisonValue::get(type);
  for (uint64_t i = 0; i < type->getNumElements(); ++i) {
    IrValue* whole = builder_.CreateBitCast(builder_.CreateExtractElement(value, i), integer);
    IrValue* moved =
        shuffle_word(builder_.CreateZExtOrTrunc(whole, builder_.getInt32Ty()), id, target);
    moved = builder_.CreateZExtOrTrunc(moved, integer);
    if (bits == 64) {
      IrValue* high = builder_.CreateTrunc(builder_.CreateLShr(whole, 32), builder_.getInt32Ty());
      high = builder_.CreateZExt(shuffle_word(high, id, target), integer);
      moved = builder_.CreateOr(moved, builder_.CreateShl(high, 32));
    }
    moved = builder_.CreateBitCast(moved, type->getElementType());
    result = builder_.CreateInsertElement(result, moved, i);
  }
  return result;
}

IrValue* ThreadJoiner::shuffle_word(IrValue* word, llvm::Intrinsic::ID id, IrValue* lane) {
  return builder_.CreateIntrinsic(
      id, {}, {builder_.getInt32(0xffffffff), word, lane, builder_.getInt32(kWarp - 1)});
}

void ThreadJoiner::write(IrValue* slot, IrValue* value) {
  llvm::Type* type = shared_type(value->getType());
  builder_.CreateStore(builder_.CreateZExtOrBitCast(value, type), address(slot, type));
}

IrValue* ThreadJoiner::read(IrValue* slot, llvm::Type* type) {
  llvm::Type* stored = shared_type(type);
  IrValue* value = builder_.CreateLoad(stored, address(slot, stored));
  return type == stored ? value
                        : builder_.CreateICmpNE(value, llvm::Constant::getNullValue(stored));
}

IrValue* ThreadJoiner::address(IrValue* slot, llvm::Type* type) {
  return builder_.CreateGEP(type, shared_memory(), slot);
}

// One array for all joins of the kernel, whose barriers keep them apart. A slot per thread of the
// widest vector.
IrValue* ThreadJoiner::shared_memory() {
  llvm::Module& module = *builder_.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* found = module.getGlobalVariable("partial_results", true)) return found;
  const int64_t slots = is_row_ ? mapping_.threads / kWarp : mapping_.threads;
  const int64_t slot_bytes = is_row_ ? 8 : 8 * mapping_.lanes;
  auto* type =
      llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<uint64_t>(slots * slot_bytes));
  auto* memory = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::UndefValue::get(type), "partial_results", nullptr,
                                          llvm::GlobalValue::NotThreadLocal, 3);
  memory->setAlignment(llvm::Align(kArgumentAlignment));
  return memory;
}

}  // namespace sgtc::gpu
