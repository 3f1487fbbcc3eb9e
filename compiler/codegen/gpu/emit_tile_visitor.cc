// The tile visitor of a GPU kernel.
//
// The problem. The kernel calls it where the accumulators leave no register, dozens of times in
// unrolled code, so it has to be short; and the last columns of a result need not fill a vector.
// Masks, as on CPUs, would need a branch per lane and access. So there are two paths: eight columns
// at once, and a loop over single columns for the rest. Where a tile lies inside the result the
// kernel says so by a constant, and the second path disappears.
#include "codegen/gpu/emit_tile_visitor.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <vector>

#include "codegen/emit_epilogue.h"
#include "codegen/gpu/declare_kernel.h"
#include "passes/thread_mapping.h"

namespace sgtc::gpu {
namespace {

constexpr int64_t kLineBytes = 128;  // of one prefetch

std::vector<IrValue*> load_global_arguments(llvm::IRBuilder<>& builder, IrValue* array,
                                            size_t count) {
  std::vector<IrValue*> arguments;
  for (size_t i = 0; i < count; ++i) {
    arguments.push_back(
        builder.CreateLoad(builder.getPtrTy(kGlobalMemory),
                           builder.CreateConstInBoundsGEP1_64(builder.getPtrTy(), array, i)));
  }
  return arguments;
}

KernelParameters parameters_of(const KernelSpec& spec, std::vector<IrValue*> arguments,
                               int64_t lanes) {
  KernelParameters parameters;
  parameters.arguments = std::move(arguments);
  parameters.lanes = lanes;
  parameters.alignment = visits_aligned_columns(spec.anchor) ? kArgumentAlignment : 1;
  return parameters;
}

// Of a visitor whose first parameter is the array of arguments.
KernelParameters visitor_parameters(llvm::IRBuilder<>& builder, const KernelSpec& spec,
                                    llvm::Function* function, int64_t lanes) {
  return parameters_of(
      spec, load_global_arguments(builder, function->getArg(0), spec.arguments.size()), lanes);
}

// Moves the emitter to a row and to the columns from `column` on.
void set_position(llvm::IRBuilder<>& builder, const KernelSpec& spec, llvm::Function* function,
                  IrValue* column, NestEmitter& emitter) {
  set_tile_row(builder, spec.nest, function->getArg(1), function->getArg(2), emitter.position);
  emitter.position.vector_base = column;
  emitter.position.is_aligned = visits_aligned_columns(spec.anchor);
}

// Stores the columns from `column` on, one per lane of `values`.
void store_columns(llvm::IRBuilder<>& builder, const KernelSpec& spec, llvm::Function* function,
                   const KernelParameters& parameters, IrValue* column, IrValue* values) {
  NestEmitter emitter(builder, spec, parameters);
  set_position(builder, spec, function, column, emitter);
  emitter.given = values;
  store_tile_lanes(emitter, spec.nest);
}

// Whether `columns` of them are consecutive in memory and read in any case.
bool loads_consecutive(const LoopNest& nest, const Expression& expression, bool is_aligned,
                       int64_t columns) {
  if (expression.kind != Expression::Kind::kLoad) return false;
  if (!expression.guards.empty() || !expression.index.computed.empty()) return false;
  const VectorPattern pattern = vector_pattern(nest, expression.index, is_aligned, columns);
  return pattern.kind != VectorPattern::Kind::kScattered && pattern.stride == 1;
}

// A load of as many elements as the result has, from consecutive memory.
bool is_worth_prefetching(const LoopNest& nest, const Expression& expression) {
  if (!loads_consecutive(nest, expression, true, kPrefetchedColumns)) return false;
  const auto& coefficients = expression.index.coefficients;
  return std::any_of(coefficients.begin() + nest.row_begin,
                     coefficients.begin() + nest.vector_begin,
                     [](int64_t coefficient) { return coefficient != 0; });
}

// Calls take(load, word) for the loads that sgtc_tile_load does, and where it puts their words.
template <typename Take>
void for_loads(const KernelSpec& spec, Take take) {
  int64_t words = 0;
  for (size_t i = 0; i < spec.nest.expressions.size(); ++i) {
    const Expression& expression = spec.nest.expressions[i];
    const bool is_aligned = visits_aligned_columns(spec.anchor);
    if (!loads_consecutive(spec.nest, expression, is_aligned, kVisitedColumns)) continue;
    const int64_t more = kVisitedColumns * size_of(expression.dtype) / 4;
    if (words + more > kTileWords) continue;
    take(static_cast<ExpressionId>(i), static_cast<uint64_t>(words));
    words += more;
  }
}

IrValue* word_address(llvm::IRBuilder<>& builder, IrValue* words, uint64_t word) {
  return builder.CreateConstInBoundsGEP1_64(builder.getInt32Ty(), words, word);
}

void prefetch_line(llvm::IRBuilder<>& builder, IrValue* address) {
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {address->getType()}, false);
  builder.CreateCall(llvm::InlineAsm::get(type, "prefetch.global.L2 [$0];", "l", true), {address});
}

}  // namespace

void emit_tile_store(llvm::Module& module, const KernelSpec& spec) {
  llvm::IRBuilder<> builder(module.getContext());
  llvm::Type* single = builder.getFloatTy();
  llvm::Function* function =
      define_visitor(module, "sgtc_tile_store",
                     {llvm::FixedVectorType::get(single, kVisitedColumns), builder.getInt64Ty()});
  builder.SetInsertPoint(&function->getEntryBlock());
  const std::vector<IrValue*> arguments =
      load_global_arguments(builder, function->getArg(0), spec.arguments.size());
  IrValue* column = function->getArg(3);
  IrValue* values = function->getArg(4);
  IrValue* lanes = function->getArg(5);
  IrValue* whole = builder.CreateICmpEQ(lanes, builder.getInt64(kVisitedColumns));
  emit_if(builder, whole, [&] {
    store_columns(builder, spec, function, parameters_of(spec, arguments, kVisitedColumns), column,
                  values);
  });
  emit_if(builder, builder.CreateNot(whole), [&] {
    emit_for(builder, builder.getInt64(0), lanes, 1, [&](IrValue* lane) {
      IrValue* value = builder.CreateVectorSplat(1, builder.CreateExtractElement(values, lane));
      store_columns(builder, spec, function, parameters_of(spec, arguments, 1),
                    builder.CreateAdd(column, lane), value);
    });
  });
  builder.CreateRetVoid();
}

void emit_tile_load(llvm::Module& module, const KernelSpec& spec) {
  llvm::Type* pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Function* function = define_visitor(module, "sgtc_tile_load", {pointer});
  llvm::IRBuilder<> builder(&function->getEntryBlock());
  NestEmitter emitter(builder, spec, visitor_parameters(builder, spec, function, kVisitedColumns));
  set_position(builder, spec, function, function->getArg(3), emitter);
  for_loads(spec, [&](ExpressionId load, uint64_t word) {
    IrValue* to = word_address(builder, function->getArg(4), word);
    builder.CreateAlignedStore(emitter.load_raw(load), to, llvm::Align(4));
  });
  builder.CreateRetVoid();
}

void emit_tile_store_loaded(llvm::Module& module, const KernelSpec& spec) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* floats = llvm::FixedVectorType::get(llvm::Type::getFloatTy(context), kVisitedColumns);
  llvm::Function* function = define_visitor(module, "sgtc_tile_store_loaded",
                                            {floats, llvm::PointerType::get(context, 0)});
  llvm::IRBuilder<> builder(&function->getEntryBlock());
  NestEmitter emitter(builder, spec, visitor_parameters(builder, spec, function, kVisitedColumns));
  set_position(builder, spec, function, function->getArg(3), emitter);
  emitter.given = function->getArg(4);
  for_loads(spec, [&](ExpressionId load, uint64_t word) {
    IrValue* from = word_address(builder, function->getArg(5), word);
    IrValue* raw = builder.CreateAlignedLoad(emitter.raw_type(load), from, llvm::Align(4));
    emitter.set_loaded(load, raw);
  });
  store_tile_lanes(emitter, spec.nest);
  builder.CreateRetVoid();
}

void emit_tile_prefetch(llvm::Module& module, const KernelSpec& spec) {
  llvm::Function* function = define_visitor(module, "sgtc_tile_prefetch", {});
  llvm::IRBuilder<> builder(&function->getEntryBlock());
  NestEmitter emitter(builder, spec,
                      visitor_parameters(builder, spec, function, kPrefetchedColumns));
  set_tile_row(builder, spec.nest, function->getArg(1), function->getArg(2), emitter.position);
  emitter.position.vector_base = function->getArg(3);
  for (const Expression& expression : spec.nest.expressions) {
    if (!is_worth_prefetching(spec.nest, expression)) continue;
    IrValue* first = emitter.address_of(expression);
    for (int64_t byte = 0; byte < kPrefetchedColumns * size_of(expression.dtype);
         byte += kLineBytes) {
      prefetch_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), first,
                                                        static_cast<uint64_t>(byte)));
    }
  }
  builder.CreateRetVoid();
}

}  // namespace sgtc::gpu
