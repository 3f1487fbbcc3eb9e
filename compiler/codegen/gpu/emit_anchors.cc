#include "codegen/gpu/emit_anchors.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "codegen/control_flow.h"
#include "codegen/gpu/declare_kernel.h"

namespace sgtc::gpu {
namespace {

llvm::GlobalVariable* shape_constant(llvm::Module& module, const std::vector<int64_t>& shape) {
  llvm::Constant* data = llvm::ConstantDataArray::get(
      module.getContext(),
      llvm::ArrayRef<uint64_t>(reinterpret_cast<const uint64_t*>(shape.data()), shape.size()));
  auto* constant = new llvm::GlobalVariable(module, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data, "shape");
  constant->setAlignment(llvm::Align(8));
  return constant;
}

// An array of pointers in the thread's memory, which disappears when the entry is inlined.
IrValue* array_of(llvm::IRBuilder<>& builder, const std::vector<IrValue*>& pointers) {
  IrValue* array =
      emit_variable(builder, llvm::ArrayType::get(builder.getPtrTy(), pointers.size()));
  for (size_t i = 0; i < pointers.size(); ++i) {
    builder.CreateStore(pointers[i],
                        builder.CreateConstInBoundsGEP1_64(builder.getPtrTy(), array, i));
  }
  return array;
}

// The argument of `kernel` that a written kernel means, as a pointer to any memory.
IrValue* tensor_of(llvm::IRBuilder<>& builder, llvm::Function* kernel, const KernelSpec& spec,
                   const TensorPointer& tensor) {
  if (tensor.kind == TensorPointer::Kind::kNull) {
    return llvm::ConstantPointerNull::get(builder.getPtrTy());
  }
  size_t at = static_cast<size_t>(tensor.index);
  // Tensor maps come after the arguments and the number of the micro-batch.
  if (tensor.kind == TensorPointer::Kind::kTensorMap) at += spec.arguments.size() + 1;
  return builder.CreateAddrSpaceCast(kernel->getArg(static_cast<unsigned>(at)), builder.getPtrTy());
}

}  // namespace

void emit_anchor_kernel(llvm::Module& module, const KernelSpec& spec) {
  llvm::Function* kernel = declare_kernel(module, spec);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", kernel));
  std::vector<IrValue*> arguments;
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    arguments.push_back(kernel->getArg(static_cast<unsigned>(i)));
  }
  std::vector<IrValue*> tensors;
  for (const TensorPointer& tensor : spec.entry.tensors) {
    tensors.push_back(tensor_of(builder, kernel, spec, tensor));
  }
  llvm::Type* pointer = builder.getPtrTy();
  llvm::FunctionCallee entry = module.getOrInsertFunction(
      spec.entry.name,
      llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer}, false));
  llvm::CallInst* call =
      builder.CreateCall(entry, {shape_constant(module, spec.entry.shape),
                                 array_of(builder, arguments), array_of(builder, tensors)});
  call->addFnAttr(llvm::Attribute::AlwaysInline);
  builder.CreateRetVoid();
}

}  // namespace sgtc::gpu
