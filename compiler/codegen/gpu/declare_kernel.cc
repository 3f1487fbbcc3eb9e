#include "codegen/gpu/declare_kernel.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>

#include <algorithm>
#include <vector>

#include "passes/thread_mapping.h"
#include "support/diagnostics.h"

namespace sgtc::gpu {
namespace {

// Whether the bytes of the argument may be those of another one.
bool may_overlap(const KernelSpec& spec, size_t argument) {
  if (!spec.arguments[argument].may_alias.empty()) return true;
  return std::any_of(spec.arguments.begin(), spec.arguments.end(), [&](const auto& other) {
    return std::count(other.may_alias.begin(), other.may_alias.end(),
                      static_cast<int32_t>(argument)) > 0;
  });
}

void annotate(llvm::Function* function, const char* what, int64_t value) {
  llvm::LLVMContext& context = function->getContext();
  auto number =
      llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), static_cast<uint64_t>(value));
  function->getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, what),
                    llvm::ConstantAsMetadata::get(number)}));
}

}  // namespace

llvm::Function* declare_kernel(llvm::Module& module, const KernelSpec& spec) {
  SGTC_CHECK(spec.launch.threads > 0, spec.symbol + " is no kernel for GPUs");
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, kGlobalMemory);
  const size_t pointers = spec.launch.indirect ? 1 : spec.arguments.size();
  std::vector<llvm::Type*> parameters(pointers, pointer);
  parameters.push_back(llvm::Type::getInt64Ty(context));
  parameters.insert(parameters.end(), spec.launch.tensor_maps.size() + 1, pointer);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters, false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, spec.symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::Convergent);
  if (!spec.launch.indirect) set_argument_attributes(function, spec);
  annotate(function, "kernel", 1);
  annotate(function, "maxntidx", spec.launch.threads);
  if (spec.launch.registers > 0) annotate(function, "maxnreg", spec.launch.registers);
  return function;
}

void set_argument_attributes(llvm::Function* function, const KernelSpec& spec) {
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    const auto at = static_cast<unsigned>(i);
    function->addParamAttr(at, llvm::Attribute::getWithAlignment(function->getContext(),
                                                                 llvm::Align(kArgumentAlignment)));
    if (may_overlap(spec, i)) continue;
    function->addParamAttr(at, llvm::Attribute::NoAlias);
    // Such arguments are read through the non-coherent cache.
    bool is_read = spec.arguments[i].kind == KernelArgument::Kind::kValue &&
                   spec.arguments[i].mode == AccessMode::kRead;
    if (is_read) function->addParamAttr(at, llvm::Attribute::ReadOnly);
  }
}

}  // namespace sgtc::gpu
