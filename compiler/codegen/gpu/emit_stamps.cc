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

constexpr int64_t kMostThreads = 1024;  // of a block

// Code before `next` that runs under a condition: where it goes.
llvm::Instruction* emit_branch(IrValue* condition, llvm::Instruction* next) {
  return llvm::SplitBlockAndInsertIfThen(condition, next, /*Unreachable=*/false);
}

// Before `next`, the first of every `threads` threads lowers a word of the launch's stamps to the
// time, or to its complement.
void emit_stamp(llvm::Function* kernel, llvm::Instruction* next, int64_t threads, uint64_t word,
                bool complement) {
  llvm::IRBuilder<> builder(next);
  IrValue* stamps = kernel->getArg(kernel->arg_size() - 1);
  builder.SetInsertPoint(emit_branch(builder.CreateIsNotNull(stamps), next));
  IrValue* lane =
      builder.CreateURem(emit_register(builder, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x),
                         builder.getInt64(static_cast<uint64_t>(threads)));
  builder.SetInsertPoint(
      emit_branch(builder.CreateICmpEQ(lane, builder.getInt64(0)), &*builder.GetInsertPoint()));
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
  emit_stamp(kernel, begin, kMostThreads, 0, false);
  for (llvm::Instruction* end : ends) emit_stamp(kernel, end, kWarp, 1, true);
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
