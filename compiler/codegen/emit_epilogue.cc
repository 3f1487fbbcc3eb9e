#include "codegen/emit_epilogue.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "codegen/control_flow.h"

namespace sgtc {
namespace {

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

}  // namespace

llvm::Function* define_visitor(llvm::Module& module, const char* name,
                               const std::vector<llvm::Type*>& further) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  std::vector<llvm::Type*> parameters = {llvm::PointerType::get(context, 0), i64, i64, i64};
  parameters.insert(parameters.end(), further.begin(), further.end());
  llvm::Type* result = llvm::Type::getVoidTy(context);
  module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
  llvm::Function* function = module.getFunction(name);
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::BasicBlock::Create(context, "entry", function);
  return function;
}

bool visits_aligned_columns(Op anchor) { return anchor == Op::kMatMul; }

void set_tile_row(llvm::IRBuilder<>& builder, const LoopNest& nest, IrValue* batch, IrValue* row,
                  LanePosition& position) {
  position.coordinates.assign(nest.atoms.size(), nullptr);
  set_coordinates(builder, nest, 0, nest.row_begin, batch, position);
  set_coordinates(builder, nest, nest.row_begin, nest.vector_begin, row, position);
}

void store_tile_lanes(NestEmitter& emitter, const LoopNest& nest) {
  for (const Store& store : nest.stores) emitter.value(store.value);
  for (const Store& store : nest.stores) emitter.store(store);
}

void emit_tile_store(llvm::Module& module, const KernelSpec& spec) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Function* function =
      define_visitor(module, "sgtc_tile_store",
                     {llvm::FixedVectorType::get(llvm::Type::getFloatTy(context), kLanes),
                      llvm::Type::getInt64Ty(context)});
  llvm::IRBuilder<> builder(&function->getEntryBlock());
  const LoopNest& nest = spec.nest;
  KernelParameters parameters;
  parameters.arguments = load_arguments(builder, function->getArg(0), spec.arguments.size());
  NestEmitter emitter(builder, spec, parameters);
  LanePosition& position = emitter.position;
  set_tile_row(builder, nest, function->getArg(1), function->getArg(2), position);
  position.vector_base = function->getArg(3);
  position.is_aligned = visits_aligned_columns(spec.anchor);
  emitter.given = function->getArg(4);
  IrValue* lanes = function->getArg(5);
  IrValue* whole = builder.CreateICmpEQ(lanes, builder.getInt64(kLanes));
  emit_if(builder, whole, [&] { store_tile_lanes(emitter, nest); });
  emit_if(builder, builder.CreateNot(whole), [&] {
    Lanes vectors(builder);
    position.mask = builder.CreateICmpSLT(vectors.numbers(), vectors.splat(lanes));
    for (Level level : {Level::kKernel, Level::kRow, Level::kElement}) emitter.forget(level);
    store_tile_lanes(emitter, nest);
  });
  builder.CreateRetVoid();
}

void emit_tile_prefetch(llvm::Module& module, const KernelSpec& spec) {
  llvm::Function* function = define_visitor(module, "sgtc_tile_prefetch", {});
  llvm::IRBuilder<> builder(&function->getEntryBlock());
  KernelParameters parameters;
  parameters.arguments = load_arguments(builder, function->getArg(0), spec.arguments.size());
  NestEmitter emitter(builder, spec, parameters);
  set_tile_row(builder, spec.nest, function->getArg(1), function->getArg(2), emitter.position);
  emitter.position.vector_base = function->getArg(3);
  emitter.position.is_aligned = visits_aligned_columns(spec.anchor);
  emitter.prefetch_elements();
  builder.CreateRetVoid();
}

}  // namespace sgtc
