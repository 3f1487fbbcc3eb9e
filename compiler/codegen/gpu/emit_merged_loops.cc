// Every number and address that a block needs before its work is the same for all its threads and,
// mostly, for its neighbours: it comes from the caches, while other blocks keep memory busy.
#include "codegen/gpu/emit_merged_loops.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <string>
#include <vector>

#include "codegen/control_flow.h"
#include "codegen/gpu/declare_kernel.h"
#include "codegen/gpu/emit_loops.h"
#include "codegen/gpu/join_threads.h"
#include "passes/gpu/merge_loops.h"

namespace sgtc::gpu {
namespace {

class MergedKernelEmitter {
 public:
  MergedKernelEmitter(llvm::Module& module, const KernelSpec& spec)
      : spec_(spec),
        loops_(*spec.merged),
        kernel_(declare_kernel(module, spec)),
        builder_(llvm::BasicBlock::Create(module.getContext(), "entry", kernel_)) {
    for (const LoopBody& body : loops_.bodies) {
      bodies_.push_back(emit_loop_body(module, "body_" + std::to_string(bodies_.size()),
                                       body.kernel, body.mapping, body.varies_in_steps));
    }
  }

  void run() {
    table_ = load(pointer_type(), kernel_->getArg(0),
                  i64(static_cast<int64_t>(spec_.arguments.size()) - 1));
    IrValue* first = emit_register(builder_, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    IrValue* step = emit_register(builder_, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    emit_for(builder_, first, i64(loops_.blocks), step, [&](IrValue* block) { emit_block(block); });
    builder_.CreateRetVoid();
  }

 private:
  llvm::Type* pointer_type() { return builder_.getPtrTy(kGlobalMemory); }
  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  // Of what no kernel changes.
  IrValue* load(llvm::Type* type, IrValue* array, IrValue* index) {
    llvm::LoadInst* loaded = builder_.CreateAlignedLoad(
        type, builder_.CreateGEP(type, array, index), llvm::Align(sizeof(int64_t)));
    loaded->setMetadata(llvm::LLVMContext::MD_invariant_load,
                        llvm::MDNode::get(builder_.getContext(), {}));
    return loaded;
  }
  IrValue* word(IrValue* index) { return load(builder_.getInt64Ty(), table_, index); }

  // The last instance whose first block is not behind `block`.
  IrValue* find_instance(IrValue* block) {
    IrValue* instance = i64(0);
    for (int64_t distance = search_length(loops_) / 2; distance > 0; distance /= 2) {
      IrValue* next = builder_.CreateAdd(instance, i64(distance));
      IrValue* begins = builder_.CreateICmpSLE(word(next), block);
      instance = builder_.CreateSelect(begins, next, instance);
    }
    return instance;
  }

  void emit_block(IrValue* block) {
    IrValue* instance = find_instance(block);
    std::vector<IrValue*> parameters;
    for (const InstanceArgument& argument : loops_.arguments) {
      IrValue* index = builder_.CreateMul(instance, i64(argument.stride));
      parameters.push_back(
          load(pointer_type(), kernel_->getArg(0), builder_.CreateAdd(index, i64(argument.first))));
    }
    parameters.push_back(kernel_->getArg(1));
    parameters.push_back(builder_.CreateSub(block, word(instance)));
    IrValue* row = builder_.CreateAdd(builder_.CreateMul(instance, i64(kInstanceWords)),
                                      i64(search_length(loops_)));
    parameters.push_back(word(builder_.CreateAdd(row, i64(1))));
    parameters.push_back(word(builder_.CreateAdd(row, i64(2))));
    if (bodies_.size() == 1) {
      builder_.CreateCall(bodies_[0], parameters);
      return;
    }
    IrValue* number = word(row);
    for (size_t i = 0; i < bodies_.size(); ++i) {
      IrValue* is_own = builder_.CreateICmpEQ(number, i64(static_cast<int64_t>(i)));
      emit_if(builder_, is_own, [&] { builder_.CreateCall(bodies_[i], parameters); });
    }
  }

  const KernelSpec& spec_;
  const MergedLoops& loops_;
  llvm::Function* kernel_;
  llvm::IRBuilder<> builder_;
  std::vector<llvm::Function*> bodies_;
  IrValue* table_ = nullptr;  // of instances
};

}  // namespace

void emit_merged_loops(llvm::Module& module, const KernelSpec& spec) {
  MergedKernelEmitter(module, spec).run();
}

}  // namespace sgtc::gpu
