#include "codegen/nest_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "codegen/control_flow.h"
#include "codegen/emit_compute.h"
#include "support/diagnostics.h"

namespace sgtc {

std::vector<IrValue*> load_arguments(llvm::IRBuilder<>& builder, IrValue* array, size_t count) {
  llvm::Type* pointer = builder.getPtrTy();
  std::vector<IrValue*> arguments;
  for (size_t i = 0; i < count; ++i) {
    IrValue* at = builder.CreateConstGEP1_64(pointer, array, i);
    llvm::LoadInst* load = builder.CreateLoad(pointer, at);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                      llvm::MDNode::get(builder.getContext(), {}));
    arguments.push_back(load);
  }
  return arguments;
}

NestEmitter::NestEmitter(llvm::IRBuilder<>& builder, const KernelSpec& spec,
                         KernelParameters parameters)
    : builder_(builder),
      lanes_(builder, parameters.lanes),
      spec_(spec),
      nest_(spec.nest),
      parameters_(std::move(parameters)),
      values_(spec.nest.expressions.size(), nullptr) {
  find_lane_dependences();
}

// ---- Indices

bool NestEmitter::depends_on_lane(const AffineIndex& index) const {
  for (size_t i = static_cast<size_t>(nest_.vector_begin); i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] != 0) return true;
  }
  return std::any_of(index.computed.begin(), index.computed.end(), [&](const auto& term) {
    return varies_[static_cast<size_t>(term.expression)];
  });
}

void NestEmitter::find_lane_dependences() {
  for (const Expression& expression : nest_.expressions) {
    bool varies = expression.kind == Expression::Kind::kGiven || depends_on_lane(expression.index);
    for (const Guard& guard : expression.guards) varies = varies || depends_on_lane(guard.index);
    for (ExpressionId operand : expression.operands) {
      varies = varies || varies_[static_cast<size_t>(operand)];
    }
    bool joins_lanes =
        expression.kind == Expression::Kind::kReduce && nest_.order == ReductionOrder::kLanes;
    varies_.push_back(varies && !joins_lanes);
  }
}

IrValue* NestEmitter::scaled(IrValue* value, int64_t factor) {
  if (factor == 1) return value;
  IrValue* by = i64(factor);
  return builder_.CreateMul(value, value->getType()->isVectorTy() ? lanes_.splat(by) : by);
}

IrValue* NestEmitter::sum(IrValue* a, IrValue* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return builder_.CreateAdd(a, b);
}

NestEmitter::LaneIndex NestEmitter::lane_index(const AffineIndex& index) {
  LaneIndex result;
  result.base = i64(index.constant);
  for (size_t i = 0; i < static_cast<size_t>(nest_.vector_begin); ++i) {
    if (i >= index.coefficients.size() || index.coefficients[i] == 0) continue;
    result.base = sum(result.base, scaled(position.coordinates[i], index.coefficients[i]));
  }
  add_vector_atoms(index, result);
  add_computed(index, result);
  return result;
}

// The atoms of the vector axis advance together.
void NestEmitter::add_vector_atoms(const AffineIndex& index, LaneIndex& result) {
  VectorPattern pattern = vector_pattern(nest_, index, position.is_aligned, lanes_.count());
  result.stride = pattern.stride;
  if (pattern.kind == VectorPattern::Kind::kStride) {
    if (pattern.stride == 0) return;
    result.base = sum(result.base, scaled(position.vector_base, pattern.stride));
    return;
  }
  size_t begin = static_cast<size_t>(nest_.vector_begin);
  int64_t inner = 1;
  for (size_t i = nest_.atoms.size(); i-- > begin;) {
    int64_t coefficient = index.coefficients[i];
    if (coefficient != 0 && pattern.kind == VectorPattern::Kind::kInnermost) {
      IrValue* coordinate = builder_.CreateUDiv(position.vector_base, i64(inner));
      if (i > begin) coordinate = builder_.CreateURem(coordinate, i64(nest_.atoms[i].extent));
      result.base = sum(result.base, scaled(coordinate, coefficient));
    } else if (coefficient != 0) {
      result.offsets = sum(result.offsets, scaled(lane_coordinate(i), coefficient));
    }
    inner *= nest_.atoms[i].extent;
  }
}

// Divides in 32 bits where the axis allows it: vectors of 64 bits have no division by constants.
IrValue* NestEmitter::lane_coordinate(size_t atom) {
  int64_t inner = 1;
  int64_t whole = 1;
  for (size_t i = nest_.atoms.size(); i-- > static_cast<size_t>(nest_.vector_begin);) {
    if (i > atom) inner *= nest_.atoms[i].extent;
    whole *= nest_.atoms[i].extent;
  }
  IrValue* at = builder_.CreateAdd(lanes_.splat(position.vector_base), lanes_.numbers());
  llvm::Type* type =
      whole < INT32_MAX - lanes_.count() ? builder_.getInt32Ty() : builder_.getInt64Ty();
  auto number = [&](int64_t n) {
    return lanes_.splat(llvm::ConstantInt::get(type, static_cast<uint64_t>(n)));
  };
  at = builder_.CreateTrunc(
      at, llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_.count())));
  at = builder_.CreateUDiv(at, number(inner));
  at = builder_.CreateURem(at, number(nest_.atoms[atom].extent));
  return builder_.CreateZExt(at, lanes_.type(DType::kInt64));
}

void NestEmitter::add_computed(const AffineIndex& index, LaneIndex& result) {
  for (const AffineIndex::Computed& term : index.computed) {
    IrValue* lanes = value(term.expression);
    if (varies_[static_cast<size_t>(term.expression)]) {
      result.offsets = sum(result.offsets, scaled(lanes, term.coefficient));
    } else {
      IrValue* scalar = builder_.CreateExtractElement(lanes, uint64_t{0});
      result.base = sum(result.base, scaled(scalar, term.coefficient));
    }
  }
}

IrValue* NestEmitter::per_lane(const LaneIndex& index) {
  IrValue* lanes = lanes_.splat(index.base);
  if (index.stride != 0) lanes = sum(lanes, scaled(lanes_.numbers(), index.stride));
  return sum(lanes, index.offsets);
}

IrValue* NestEmitter::guard_mask(const std::vector<Guard>& guards) {
  IrValue* mask = nullptr;
  for (const Guard& guard : guards) {
    LaneIndex index = lane_index(guard.index);
    bool uniform = index.is_uniform();
    IrValue* at = uniform ? index.base : per_lane(index);
    auto bound = [&](int64_t n) { return uniform ? i64(n) : lanes_.splat(i64(n)); };
    IrValue* holds = builder_.CreateAnd(builder_.CreateICmpSGE(at, bound(guard.low)),
                                        builder_.CreateICmpSLT(at, bound(guard.high)));
    mask = both(mask, uniform ? lanes_.splat(holds) : holds);
  }
  return mask;
}

bool NestEmitter::is_uniform(const std::vector<Guard>& guards) {
  return std::none_of(guards.begin(), guards.end(),
                      [&](const Guard& guard) { return depends_on_lane(guard.index); });
}

IrValue* NestEmitter::both(IrValue* a, IrValue* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return builder_.CreateAnd(a, b);
}

IrValue* NestEmitter::address(int32_t argument, DType dtype, IrValue* index) {
  return builder_.CreateGEP(lanes_.memory_type(dtype),
                            parameters_.arguments[static_cast<size_t>(argument)], index);
}

IrValue* NestEmitter::address_of(const Expression& load) {
  return address(load.argument, load.dtype, lane_index(load.index).base);
}

void NestEmitter::prefetch_elements() {
  std::set<int32_t> read;
  for (const Expression& load : nest_.expressions) {
    if (load.kind != Expression::Kind::kLoad || load.level != Level::kElement) continue;
    if (!load.index.computed.empty() || !depends_on_lane(load.index)) continue;
    prefetch(address_of(load), false);
    read.insert(load.argument);
  }
  for (const Store& store : nest_.stores) {
    const bool is_plain = store.index.computed.empty() && store.micro_batches == 0;
    if (!is_plain || read.count(store.argument) != 0) continue;
    const LaneIndex index = lane_index(store.index);
    if (!index.is_consecutive()) continue;
    const DType dtype = nest_.expressions[static_cast<size_t>(store.value)].dtype;
    prefetch(address(store.argument, dtype, index.base), true);
  }
}

void NestEmitter::prefetch(IrValue* from, bool writes) {
  constexpr uint32_t kSecondLevel = 2, kData = 1;
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                           {from, builder_.getInt32(writes ? 1 : 0),
                            builder_.getInt32(kSecondLevel), builder_.getInt32(kData)});
}

// Vectors begin at multiples of the lanes; all other terms of the index are looked at.
llvm::Align NestEmitter::alignment_at(const AffineIndex& index, DType dtype,
                                      int64_t further) const {
  VectorPattern pattern = vector_pattern(nest_, index, position.is_aligned, lanes_.count());
  size_t end = static_cast<size_t>(nest_.vector_begin);
  if (pattern.kind == VectorPattern::Kind::kInnermost) end = nest_.atoms.size() - 1;
  int64_t elements = std::gcd(std::gcd(lanes_.count(), index.constant), further);
  for (size_t i = 0; i < std::min(end, index.coefficients.size()); ++i) {
    elements = std::gcd(elements, index.coefficients[i]);
  }
  for (const AffineIndex::Computed& term : index.computed) {
    elements = std::gcd(elements, term.coefficient);
  }
  const int64_t size = size_of(dtype);
  const int64_t bytes = std::min(elements * size, parameters_.alignment);
  return llvm::Align(static_cast<uint64_t>(std::max(bytes, size)));
}

// ---- Values

IrValue* NestEmitter::value(ExpressionId id) {
  IrValue*& kept = values_[static_cast<size_t>(id)];
  if (kept == nullptr) {
    IrValue* emitted = emit(id);
    values_[static_cast<size_t>(id)] = emitted;
    return emitted;
  }
  return kept;
}

void NestEmitter::forget(Level level) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (nest_.expressions[i].level == level) values_[i] = nullptr;
  }
}

std::vector<IrValue*> NestEmitter::exchange_elements(std::vector<IrValue*> values) {
  values.resize(values_.size(), nullptr);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (nest_.expressions[i].level == Level::kElement) std::swap(values_[i], values[i]);
  }
  return values;
}

void NestEmitter::evaluate_loads(const std::vector<ExpressionId>& work) {
  auto is_known = [&](const AffineIndex& index) {
    return std::all_of(index.computed.begin(), index.computed.end(), [&](const auto& term) {
      return nest_.expressions[static_cast<size_t>(term.expression)].level != Level::kElement;
    });
  };
  for (ExpressionId id : work) {
    const Expression& load = nest_.expressions[static_cast<size_t>(id)];
    if (load.kind != Expression::Kind::kLoad || !is_known(load.index)) continue;
    const bool guards_known = std::all_of(load.guards.begin(), load.guards.end(),
                                          [&](const Guard& g) { return is_known(g.index); });
    if (guards_known) value(id);
  }
}

void NestEmitter::evaluate_operands(const Store& store) {
  value(store.value);
  for (const AffineIndex::Computed& term : store.index.computed) value(term.expression);
}

void NestEmitter::evaluate(Level level, int32_t depth) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Expression& expression = nest_.expressions[i];
    if (expression.level != level || expression.depth != depth) continue;
    if (expression.kind != Expression::Kind::kReduce) value(static_cast<ExpressionId>(i));
  }
}

IrValue* NestEmitter::emit(ExpressionId id) {
  const Expression& expression = nest_.expressions[static_cast<size_t>(id)];
  switch (expression.kind) {
    case Expression::Kind::kLoad:
      return load(expression);
    case Expression::Kind::kConstant:
      return lanes_.constant(expression.dtype, expression.real, expression.integer);
    case Expression::Kind::kIndex:
      return lanes_.convert(per_lane(lane_index(expression.index)), DType::kInt64,
                            expression.dtype);
    case Expression::Kind::kCompute:
      return compute(expression);
    case Expression::Kind::kSelect:
      return builder_.CreateSelect(guard_mask(expression.guards), value(expression.operands[0]),
                                   value(expression.operands[1]));
    case Expression::Kind::kChecked:
      return checked(expression);
    case Expression::Kind::kRandom:
      return random(expression);
    case Expression::Kind::kGiven:
      return lanes_.round(given, expression.dtype);
    case Expression::Kind::kReduce:
      break;
  }
  internal_error(__FILE__, __LINE__, "a reduction is used before its sweep");
}

IrValue* NestEmitter::compute(const Expression& expression) {
  std::vector<IrValue*> operands;
  std::vector<DType> dtypes;
  for (ExpressionId operand : expression.operands) {
    operands.push_back(value(operand));
    dtypes.push_back(nest_.expressions[static_cast<size_t>(operand)].dtype);
  }
  return emit_compute(builder_, expression, operands, dtypes);
}

IrValue* NestEmitter::load(const Expression& expression) {
  LaneIndex index = lane_index(expression.index);
  IrValue* guard = guard_mask(expression.guards);
  if (index.is_uniform() && is_uniform(expression.guards)) {
    return load_uniform(expression, index.base, guard);
  }
  bool is_contiguous = index.is_consecutive();
  if (is_contiguous && lanes_.is_thread() && is_uniform(expression.guards)) {
    return load_whole(expression, index.base, guard);
  }
  guard = both(guard, position.mask);
  if (is_contiguous && (guard == nullptr || !lanes_.is_thread())) {
    return load_vector(expression, index.base, guard);
  }
  return load_scattered(expression, index, guard);
}

// One element for all lanes. Where the guard fails element 0 is read instead, and dropped.
IrValue* NestEmitter::load_uniform(const Expression& expression, IrValue* index, IrValue* guard) {
  if (guard != nullptr) {
    IrValue* holds = builder_.CreateExtractElement(guard, uint64_t{0});
    index = builder_.CreateSelect(holds, index, i64(0));
  }
  IrValue* element = builder_.CreateLoad(lanes_.memory_type(expression.dtype),
                                         address(expression.argument, expression.dtype, index));
  IrValue* lanes = lanes_.from_memory(lanes_.splat(element), expression.dtype);
  if (guard == nullptr) return lanes;
  return builder_.CreateSelect(guard, lanes, lanes_.zero(expression.dtype));
}

// All lanes or none. Where the guard fails the first elements are read instead, and dropped.
IrValue* NestEmitter::load_whole(const Expression& expression, IrValue* index, IrValue* guard) {
  if (guard == nullptr) return load_vector(expression, index, nullptr);
  IrValue* holds = builder_.CreateExtractElement(guard, uint64_t{0});
  IrValue* lanes = load_vector(expression, builder_.CreateSelect(holds, index, i64(0)), nullptr);
  return builder_.CreateSelect(guard, lanes, lanes_.zero(expression.dtype));
}

IrValue* NestEmitter::load_vector(const Expression& expression, IrValue* index, IrValue* guard) {
  IrValue* from = address(expression.argument, expression.dtype, index);
  llvm::Align align = alignment_at(expression.index, expression.dtype);
  if (guard == nullptr) {
    return from_raw(builder_.CreateAlignedLoad(raw_type(expression), from, align),
                    expression.dtype);
  }
  llvm::Type* type = lanes_.memory_vector(expression.dtype);
  IrValue* loaded =
      builder_.CreateMaskedLoad(type, from, align, guard, llvm::Constant::getNullValue(type));
  return lanes_.from_memory(loaded, expression.dtype);
}

llvm::FixedVectorType* NestEmitter::raw_type(const Expression& expression) {
  const bool in_pairs = lanes_.has_pairs(expression.dtype) &&
                        alignment_at(expression.index, expression.dtype).value() >= 4;
  return in_pairs ? lanes_.pairs() : lanes_.memory_vector(expression.dtype);
}

IrValue* NestEmitter::from_raw(IrValue* raw, DType dtype) const {
  const bool in_pairs = lanes_.has_pairs(dtype) && raw->getType() == lanes_.pairs();
  return in_pairs ? lanes_.from_pairs(raw) : lanes_.from_memory(raw, dtype);
}

llvm::FixedVectorType* NestEmitter::raw_type(ExpressionId id) {
  return raw_type(nest_.expressions[static_cast<size_t>(id)]);
}

IrValue* NestEmitter::load_raw(ExpressionId id) {
  const Expression& load = nest_.expressions[static_cast<size_t>(id)];
  return builder_.CreateAlignedLoad(raw_type(load), address_of(load),
                                    alignment_at(load.index, load.dtype));
}

void NestEmitter::set_loaded(ExpressionId id, IrValue* raw) {
  set(id, from_raw(raw, nest_.expressions[static_cast<size_t>(id)].dtype));
}

// Lanes out of range read element 0, so that no branch is needed.
IrValue* NestEmitter::load_scattered(const Expression& expression, const LaneIndex& index,
                                     IrValue* guard) {
  IrValue* at = per_lane(index);
  if (guard != nullptr) at = builder_.CreateSelect(guard, at, lanes_.zero(DType::kInt64));
  llvm::Type* type = lanes_.memory_vector(expression.dtype);
  IrValue* loaded = llvm::PoisonValue::get(type);
  for (uint64_t lane = 0; lane < static_cast<uint64_t>(lanes_.count()); ++lane) {
    IrValue* from =
        address(expression.argument, expression.dtype, builder_.CreateExtractElement(at, lane));
    IrValue* element = builder_.CreateLoad(lanes_.memory_type(expression.dtype), from);
    loaded = builder_.CreateInsertElement(loaded, element, lane);
  }
  IrValue* lanes = lanes_.from_memory(loaded, expression.dtype);
  if (guard == nullptr) return lanes;
  return builder_.CreateSelect(guard, lanes, lanes_.zero(expression.dtype));
}

// ---- Checked indices

IrValue* NestEmitter::checked(const Expression& expression) {
  ExpressionId operand = expression.operands[0];
  DType from = nest_.expressions[static_cast<size_t>(operand)].dtype;
  IrValue* raw = lanes_.convert(value(operand), from, DType::kInt64);
  IrValue* zero = lanes_.zero(DType::kInt64);
  IrValue* extent = lanes_.splat(i64(expression.integer));
  IrValue* index = raw;
  if (expression.op != Op::kPick) {
    index = builder_.CreateSelect(builder_.CreateICmpSLT(raw, zero),
                                  builder_.CreateAdd(raw, extent), raw);
  }
  // One unsigned comparison finds both ends.
  IrValue* outside = builder_.CreateICmpUGE(index, extent);
  IrValue* counts = both(guard_mask(expression.guards), position.mask);
  IrValue* bad = counts == nullptr ? outside : builder_.CreateAnd(outside, counts);
  report(bad, raw, expression.integer);
  return builder_.CreateSelect(outside, zero, index);
}

// The first bad index of a run stays: {checked node, index, extent}. Threads may race; each word
// is written whole, and any of the bad indices will do.
void NestEmitter::report(IrValue* bad, IrValue* index, int64_t extent) {
  emit_if(builder_, builder_.CreateOrReduce(bad), [&] {
    size_t argument = 0;
    while (spec_.arguments[argument].kind != KernelArgument::Kind::kStatus) ++argument;
    IrValue* status = parameters_.arguments[argument];
    IrValue* first = nullptr;
    for (uint64_t lane = static_cast<uint64_t>(lanes_.count()); lane-- > 0;) {
      IrValue* of_lane = builder_.CreateExtractElement(index, lane);
      IrValue* is_bad = builder_.CreateExtractElement(bad, lane);
      first = first == nullptr ? of_lane : builder_.CreateSelect(is_bad, of_lane, first);
    }
    IrValue* word = builder_.CreateLoad(builder_.getInt64Ty(), status);
    emit_if(builder_, builder_.CreateICmpEQ(word, i64(0)), [&] {
      auto write = [&](int64_t number, IrValue* content) {
        builder_.CreateStore(content,
                             builder_.CreateGEP(builder_.getInt64Ty(), status, i64(number)));
      };
      write(1, first);
      write(2, i64(extent));
      write(0, i64(spec_.checked_node));
    });
  });
}

// ---- Random numbers

// 16 consecutive elements at once; any other pattern, and shorter vectors, one lane at a time.
IrValue* NestEmitter::random(const Expression& expression) {
  auto scalar = [&](size_t operand) {
    return builder_.CreateExtractElement(value(expression.operands[operand]), uint64_t{0});
  };
  bool is_wide = lanes_.count() == kLanes;
  llvm::Type* type = is_wide ? lanes_.type(DType::kFloat32) : builder_.getFloatTy();
  std::vector<llvm::Type*> parameters(5, builder_.getInt64Ty());
  llvm::FunctionCallee function = builder_.GetInsertBlock()->getModule()->getOrInsertFunction(
      "sgtc_" + std::string(name_of(expression.op)) + (is_wide ? "_v16f32" : "_f32"),
      llvm::FunctionType::get(type, parameters, false));
  std::vector<IrValue*> arguments = {scalar(0), scalar(1), i64(expression.integer),
                                     parameters_.micro_batch, nullptr};
  LaneIndex index = lane_index(expression.index);
  if (is_wide && index.is_consecutive()) {
    arguments[4] = index.base;
    return builder_.CreateCall(function, arguments);
  }
  IrValue* at = per_lane(index);
  return emit_lane_loop(builder_, builder_.getFloatTy(), lanes_.count(), [&](IrValue* lane) {
    arguments[4] = builder_.CreateExtractElement(at, lane);
    IrValue* drawn = builder_.CreateCall(function, arguments);
    return is_wide ? builder_.CreateExtractElement(drawn, uint64_t{0}) : drawn;
  });
}

// ---- Stores

void NestEmitter::store(const Store& store) {
  DType dtype = nest_.expressions[static_cast<size_t>(store.value)].dtype;
  LaneIndex index = lane_index(store.index);
  if (store.micro_batches > 0) {
    IrValue* row = builder_.CreateURem(parameters_.micro_batch, i64(store.micro_batches));
    index.base = sum(index.base, scaled(row, store.micro_batch_stride));
  }
  llvm::Align align = alignment_at(store.index, dtype, store.micro_batch_stride);
  if (index.is_consecutive()) {
    store_vector(value(store.value), dtype, address(store.argument, dtype, index.base), align);
    return;
  }
  llvm::Align element(static_cast<uint64_t>(size_of(dtype)));
  IrValue* lanes = lanes_.to_memory(value(store.value), dtype);
  if (index.is_uniform()) {
    builder_.CreateStore(builder_.CreateExtractElement(lanes, uint64_t{0}),
                         address(store.argument, dtype, index.base));
  } else {
    store_scattered(lanes, address(store.argument, dtype, per_lane(index)), element);
  }
}

void NestEmitter::store_vector(IrValue* lanes, DType dtype, IrValue* to, llvm::Align align) {
  if (lanes_.has_pairs(dtype) && align.value() >= 4) {
    builder_.CreateAlignedStore(lanes_.to_pairs(lanes), to, align);
  } else if (position.mask == nullptr) {
    builder_.CreateAlignedStore(lanes_.to_memory(lanes, dtype), to, align);
  } else {
    builder_.CreateMaskedStore(lanes_.to_memory(lanes, dtype), to, align, position.mask);
  }
}

void NestEmitter::store_scattered(IrValue* lanes, IrValue* pointers, llvm::Align align) {
  if (position.mask != nullptr) {
    builder_.CreateMaskedScatter(lanes, pointers, align, position.mask);
    return;
  }
  for (uint64_t lane = 0; lane < static_cast<uint64_t>(lanes_.count()); ++lane) {
    builder_.CreateAlignedStore(builder_.CreateExtractElement(lanes, lane),
                                builder_.CreateExtractElement(pointers, lane), align);
  }
}

}  // namespace sgtc
