#include "codegen/control_flow.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>

namespace sgtc {
namespace {

llvm::BasicBlock* new_block(llvm::IRBuilder<>& builder, const char* name) {
  return llvm::BasicBlock::Create(builder.getContext(), name,
                                  builder.GetInsertBlock()->getParent());
}

}  // namespace

void emit_for(llvm::IRBuilder<>& builder, IrValue* begin, IrValue* end, int64_t step,
              const std::function<void(IrValue*)>& body) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first != nullptr && last != nullptr) {
    int64_t length = last->getSExtValue() - first->getSExtValue();
    if (length <= 0) return;
    if (length <= step) return body(begin);
  }
  emit_for(builder, begin, end, builder.getInt64(static_cast<uint64_t>(step)), body);
}

void emit_for(llvm::IRBuilder<>& builder, IrValue* begin, IrValue* end, IrValue* step,
              const std::function<void(IrValue*)>& body) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* loop = new_block(builder, "loop");
  llvm::BasicBlock* after = new_block(builder, "after");
  builder.CreateCondBr(builder.CreateICmpSLT(begin, end), loop, after);
  builder.SetInsertPoint(loop);
  llvm::PHINode* i = builder.CreatePHI(builder.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  body(i);
  IrValue* next = builder.CreateNSWAdd(i, step);
  i->addIncoming(next, builder.GetInsertBlock());
  builder.CreateCondBr(builder.CreateICmpSLT(next, end), loop, after);
  builder.SetInsertPoint(after);
}

void emit_if(llvm::IRBuilder<>& builder, IrValue* condition, const std::function<void()>& then) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne()) then();
    return;
  }
  llvm::BasicBlock* yes = new_block(builder, "then");
  llvm::BasicBlock* after = new_block(builder, "after");
  builder.CreateCondBr(condition, yes, after);
  builder.SetInsertPoint(yes);
  then();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
}

llvm::AllocaInst* emit_variable(llvm::IRBuilder<>& builder, llvm::Type* type) {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
}

}  // namespace sgtc
