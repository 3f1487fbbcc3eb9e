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

// Where the slot of the number in a register begins.
IrValue* emit_slot(llvm::IRBuilder<>& builder, IrValue* stamps, llvm::Intrinsic::ID number) {
  IrValue* slot =
      builder.CreateAnd(emit_register(builder, number), builder.getInt64(plan::kStampSlots - 1));
  IrValue* offset = builder.CreateMul(slot, builder.getInt64(plan::kStampSlotBytes));
  return builder.CreateInBoundsGEP(builder.getInt8Ty(), stamps, offset);
}

// Begin and ends test and read different things, else what the begin has read and found would take
// registers until the ends.
struct Stamp {
  uint64_t least = 0;              // stamps above it are not null
  llvm::Intrinsic::ID thread = 0;  // the register that is 0 in threads that stamp
  llvm::Intrinsic::ID slot = 0;    // the register with the number of the slot
  uint64_t word = 0;
  bool complement = false;  // of the time
};
constexpr Stamp kBegin = {0, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
                          llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0, false};
constexpr Stamp kEnd = {1, llvm::Intrinsic::nvvm_read_ptx_sreg_laneid,
                        llvm::Intrinsic::nvvm_read_ptx_sreg_smid, 1, true};

// Some threads stamp before `next`.
void emit_stamp(llvm::Function* kernel, llvm::Instruction* next, const Stamp& stamp) {
  llvm::IRBuilder<> builder(next);
  IrValue* stamps = kernel->getArg(kernel->arg_size() - 1);
  IrValue* address = builder.CreatePtrToInt(stamps, builder.getInt64Ty());
  builder.SetInsertPoint(
      emit_branch(builder.CreateICmpUGT(address, builder.getInt64(stamp.least)), next));
  IrValue* stamps_it =
      builder.CreateICmpEQ(emit_register(builder, stamp.thread), builder.getInt64(0));
  builder.SetInsertPoint(emit_branch(stamps_it, &*builder.GetInsertPoint()));
  IrValue* time = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_globaltimer, {}, {});
  builder.CreateAtomicRMW(
      llvm::AtomicRMWInst::UMin,
      builder.CreateConstInBoundsGEP1_64(builder.getInt64Ty(),
                                         emit_slot(builder, stamps, stamp.slot), stamp.word),
      stamp.complement ? builder.CreateNot(time) : time, llvm::Align(8),
      llvm::AtomicOrdering::Monotonic);
}

}  // namespace

void emit_stamps(llvm::Function* kernel) {
  std::vector<llvm::Instruction*> ends;
  for (llvm::BasicBlock& block : *kernel) {
    if (llvm::isa<llvm::ReturnInst>(block.getTerminator())) ends.push_back(block.getTerminator());
  }
  llvm::Instruction* begin = &*kernel->getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
  emit_stamp(kernel, begin, kBegin);
  for (llvm::Instruction* end : ends) emit_stamp(kernel, end, kEnd);
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
