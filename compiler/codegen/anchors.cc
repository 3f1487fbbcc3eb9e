#include "codegen/anchors.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <string>

#include "passes/anchor_shapes.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

std::string entry_name(const KernelSpec& spec) {
  const DType dtype = spec.operand_types[0].dtype;
  const std::string entry = anchor_entry(spec.anchor, dtype);
  if (!entry.empty()) return entry;
  throw Error(std::string(name_of(spec.anchor)) + ": there is no kernel for elements of type " +
              std::string(name_of(dtype)) + "; cast the operands to f32");
}

llvm::GlobalVariable* shape_constant(llvm::Module& module, const KernelSpec& spec,
                                     bool wide_vectors) {
  const std::vector<int64_t> words = anchor_shape_words(spec, wide_vectors);
  llvm::Constant* data = llvm::ConstantDataArray::get(
      module.getContext(),
      llvm::ArrayRef<uint64_t>(reinterpret_cast<const uint64_t*>(words.data()), words.size()));
  auto* constant = new llvm::GlobalVariable(module, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data, "shape");
  constant->setAlignment(llvm::Align(8));
  return constant;
}

// The kernel's argument for each of the entry's tensors: operands, results, status; kNone is null.
std::vector<int32_t> tensor_arguments(const KernelSpec& spec) {
  std::vector<int32_t> tensors = spec.operand_arguments;
  tensors.insert(tensors.end(), spec.result_arguments.begin(), spec.result_arguments.end());
  int32_t status = kNone;
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    if (spec.arguments[i].kind == KernelArgument::Kind::kStatus) status = static_cast<int32_t>(i);
  }
  tensors.push_back(status);
  return tensors;
}

}  // namespace

void emit_anchor_kernel(llvm::Module& module, const KernelSpec& spec, bool wide_vectors) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* pointer = builder.getPtrTy();
  llvm::Type* word = builder.getInt64Ty();
  auto* entry_type =
      llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer, word, word}, false);
  llvm::FunctionCallee entry = module.getOrInsertFunction(entry_name(spec), entry_type);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {pointer, word, word, word}, false);
  auto* kernel =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, spec.symbol, module);
  kernel->addFnAttr(llvm::Attribute::NoUnwind);
  kernel->addFnAttr("no-builtins");  // else loops become calls of memset and memcpy
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernel));
  const std::vector<int32_t> arguments = tensor_arguments(spec);
  llvm::Value* tensors =
      builder.CreateAlloca(llvm::ArrayType::get(pointer, arguments.size()), nullptr, "tensors");
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::Value* tensor = llvm::ConstantPointerNull::get(builder.getPtrTy());
    if (arguments[i] != kNone) {
      tensor = builder.CreateLoad(
          pointer, builder.CreateConstInBoundsGEP1_64(pointer, kernel->getArg(0),
                                                      static_cast<uint64_t>(arguments[i])));
    }
    builder.CreateStore(tensor, builder.CreateConstInBoundsGEP1_64(pointer, tensors, i));
  }
  llvm::CallInst* call =
      builder.CreateCall(entry, {shape_constant(module, spec, wide_vectors), kernel->getArg(0),
                                 tensors, kernel->getArg(1), kernel->getArg(2)});
  call->addFnAttr(llvm::Attribute::AlwaysInline);
  builder.CreateRetVoid();
}

}  // namespace sgtc
