#include "codegen/gpu/emit_strided_store.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include "codegen/control_flow.h"
#include "codegen/emit_epilogue.h"
#include "codegen/gpu/declare_kernel.h"
#include "codegen/gpu/emit_tile_visitor.h"
#include "support/diagnostics.h"

namespace sgtc::gpu {
namespace {

constexpr uint64_t kStoredBytes = 16;

// Two sums as a pair of bfloat16.
IrValue* packed_pair(llvm::IRBuilder<>& builder, IrValue* values, uint64_t first) {
  llvm::Type* single = builder.getFloatTy();
  auto* type = llvm::FunctionType::get(builder.getInt32Ty(), {single, single}, false);
  llvm::InlineAsm* convert =
      llvm::InlineAsm::get(type, "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", false);
  return builder.CreateCall(convert, {builder.CreateExtractElement(values, first + 1),
                                      builder.CreateExtractElement(values, first)});
}

IrValue* packed(llvm::IRBuilder<>& builder, IrValue* values) {
  constexpr uint64_t kPairs = kVisitedColumns / 2;
  IrValue* words = llvm::PoisonValue::get(llvm::FixedVectorType::get(builder.getInt32Ty(), kPairs));
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    words = builder.CreateInsertElement(words, packed_pair(builder, values, 2 * pair), pair);
  }
  return words;
}

// The element at (batch * heads + head, row, column).
IrValue* element_at(llvm::IRBuilder<>& builder, llvm::Function* visitor, int64_t heads,
                    const StridedLayout& layout) {
  const auto constant = [&](int64_t n) { return builder.getInt64(static_cast<uint64_t>(n)); };
  IrValue* both = visitor->getArg(1);
  IrValue* const indices[] = {builder.CreateUDiv(both, constant(heads)),
                              builder.CreateURem(both, constant(heads)), visitor->getArg(2),
                              visitor->getArg(3)};
  IrValue* at = constant(layout.offset);
  for (size_t d = 0; d < layout.strides.size(); ++d) {
    at = builder.CreateAdd(at, builder.CreateMul(indices[d], constant(layout.strides[d])));
  }
  return at;
}

void emit_strided_store(llvm::Module& module, const KernelSpec& spec, const char* name,
                        size_t result) {
  const TensorType& type = spec.result_types[result];
  SGTC_CHECK(type.dtype == DType::kBFloat16 && type.shape.size() == 4,
             spec.symbol + " has a result that cannot be stored by strides");
  llvm::IRBuilder<> builder(module.getContext());
  llvm::Function* visitor = define_visitor(
      module, name,
      {llvm::FixedVectorType::get(builder.getFloatTy(), kVisitedColumns), builder.getInt64Ty()});
  builder.SetInsertPoint(&visitor->getEntryBlock());
  IrValue* any = builder.CreateICmpNE(visitor->getArg(5), builder.getInt64(0));
  emit_if(builder, any, [&] {
    IrValue* argument = builder.CreateLoad(
        builder.getPtrTy(kGlobalMemory),
        builder.CreateConstInBoundsGEP1_64(builder.getPtrTy(), visitor->getArg(0),
                                           static_cast<uint64_t>(spec.result_arguments[result])));
    IrValue* element = element_at(builder, visitor, type.shape[1], spec.result_layouts[result]);
    builder.CreateAlignedStore(packed(builder, visitor->getArg(4)),
                               builder.CreateGEP(builder.getInt16Ty(), argument, element),
                               llvm::Align(kStoredBytes));
  });
  builder.CreateRetVoid();
}

}  // namespace

void emit_strided_stores(llvm::Module& module, const KernelSpec& spec) {
  emit_strided_store(module, spec, "sgtc_tile_store", 0);
  if (spec.anchor == Op::kAttentionKeyGrad) {
    emit_strided_store(module, spec, "sgtc_tile_store_second", 1);
  }
}

}  // namespace sgtc::gpu
