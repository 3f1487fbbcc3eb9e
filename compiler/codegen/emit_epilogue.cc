#include "codegen/emit_epilogue.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/control_flow.h"
#include "codegen/nest_emitter.h"

namespace sgtc {
namespace {

llvm::Function* define_function(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* values = llvm::FixedVectorType::get(llvm::Type::getFloatTy(context), kLanes);
  llvm::Type* result = llvm::Type::getVoidTy(context);
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  module.getOrInsertFunction(
      "sgtc_tile_store",
      llvm::FunctionType::get(result, {pointer, i64, i64, i64, values, i64}, false));
  llvm::Function* function = module.getFunction("sgtc_tile_store");
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

// Takes the number of a batch entry or row apart into the coordinates of atoms [begin, end).
void set_coordinates(llvm::IRBuilder<>& builder, const LoopNest& nest, int32_t begin, int32_t end,
                     IrValue* number, LanePosition& position) {
  int64_t inner = 1;
  for (int32_t i = end; i-- > begin;) {
    size_t atom = static_cast<size_t>(i);
    auto constant = [&](int64_t n) { return builder.getInt64(static_cast<uint64_t>(n)); };
    IrValue* coordinate = inner == 1 ? number : builder.CreateUDiv(number, constant(inner));
    if (i > begin) coordinate = builder.CreateURem(coordinate, constant(nest.atoms[atom].extent));
    position.coordinates[atom] = coordinate;
    inner *= nest.atoms[atom].extent;
  }
}

void store_all(NestEmitter& emitter, const LoopNest& nest) {
  for (Level level : {Level::kKernel, Level::kRow, Level::kElement}) emitter.forget(level);
  for (const Store& store : nest.stores) emitter.value(store.value);
  for (const Store& store : nest.stores) emitter.store(store);
}

}  // namespace

void emit_tile_store(llvm::Module& module, const KernelSpec& spec) {
  llvm::Function* function = define_function(module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  const LoopNest& nest = spec.nest;
  KernelParameters parameters;
  parameters.arguments = load_arguments(builder, function->getArg(0), spec.arguments.size());
  NestEmitter emitter(builder, spec, parameters);
  LanePosition& position = emitter.position;
  position.coordinates.assign(nest.atoms.size(), nullptr);
  set_coordinates(builder, nest, 0, nest.row_begin, function->getArg(1), position);
  set_coordinates(builder, nest, nest.row_begin, nest.vector_begin, function->getArg(2), position);
  position.vector_base = function->getArg(3);
  // Tiles of a matmul begin at multiples of 16 columns; those of convolutions anywhere in a row.
  position.is_aligned = spec.anchor == Op::kMatMul;
  emitter.given = function->getArg(4);
  IrValue* lanes = function->getArg(5);
  IrValue* whole = builder.CreateICmpEQ(lanes, builder.getInt64(kLanes));
  emit_if(builder, whole, [&] { store_all(emitter, nest); });
  emit_if(builder, builder.CreateNot(whole), [&] {
    Lanes vectors(builder);
    position.mask = builder.CreateICmpSLT(vectors.numbers(), vectors.splat(lanes));
    store_all(emitter, nest);
  });
  builder.CreateRetVoid();
}

}  // namespace sgtc
