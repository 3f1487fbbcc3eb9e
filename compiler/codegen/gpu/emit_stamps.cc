#include "codegen/gpu/emit_stamps.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

#include "codegen/control_flow.h"
#include "codegen/gpu/declare_kernel.h"
#include "codegen/gpu/join_threads.h"
#include "passes/thread_mapping.h"
#include "plan/format.h"

namespace sgtc::gpu {
namespace {

// Code before `next` that runs under a condition: where it goes.
llvm::Instruction* emit_branch(IrValue* condition, llvm::Instruction* next) {
  return llvm::SplitBlockAndInsertIfThen(condition, next, /*Unreachable=*/false);
}

// Before `next`, the threads whose register `number` is 0 lower a word of the launch's stamps to
// the time, or to its complement. Stamps above `least` are not null.
void emit_stamp(llvm::Function* kernel, llvm::Instruction* next, llvm::Intrinsic::ID number,
                uint64_t least, uint64_t word, bool complement) {
  llvm::IRBuilder<> builder(next);
  IrValue* stamps = kernel->getArg(kernel->arg_size() - 1);
  IrValue* address = builder.CreatePtrToInt(stamps, builder.getInt64Ty());
  builder.SetInsertPoint(
      emit_branch(builder.CreateICmpUGT(address, builder.getInt64(least)), next));
  IrValue* is_first = builder.CreateICmpEQ(emit_register(builder, number), builder.getInt64(0));
  builder.SetInsertPoint(emit_branch(is_first, &*builder.GetInsertPoint()));
  IrValue* time = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_globaltimer, {}, {});
  builder.CreateAtomicRMW(llvm::AtomicRMWInst::UMin,
                          builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(), stamps, word),
                          complement ? builder.CreateNot(time) : time, llvm::Align(8),
                          llvm::AtomicOrdering::Monotonic);
}

}  // namespace

void emit_stamps(llvm::Function* kernel) {
  std::vector<llvm::Instruction*> ends;
  for (llvm::BasicBlock& block : *kernel) {
    if (llvm::isa<llvm::ReturnInst>(block.getTerminator())) ends.push_back(block.getTerminator());
  }
  llvm::Instruction* begin = &*kernel->getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
  // Begin and ends test different things, else the results of the tests at the begin would take
  // registers until the ends.
  emit_stamp(kernel, begin, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, 0, 0, false);
  for (llvm::Instruction* end : ends) {
    emit_stamp(kernel, end, llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, 1, 1, true);
  }
}

KernelSpec mark_kernel() {
  KernelSpec spec;
  spec.symbol = plan::kMarkKernel;
  spec.kind = "mark";
  spec.launch.threads = kWarp;
  return spec;
}

void emit_mark(llvm::Module& module, const KernelSpec& spec) {
  llvm::Function* kernel = declare_kernel(module, spec);
  llvm::IRBuilder<>(llvm::BasicBlock::Create(module.getContext(), "entry", kernel)).CreateRetVoid();
}

}  // namespace sgtc::gpu
