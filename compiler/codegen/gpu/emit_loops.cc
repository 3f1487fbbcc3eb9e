// Code of loop kernels for GPUs.
//
// The problem. A nest must run at the speed of memory whatever its shape, its bits may not depend
// on the grid (the plan leaves multiprocessors to communication), and a value must be what the CPU
// computes but for the order of sums.
//
// The choice. A thread is what a vector of 16 lanes is on a CPU: it computes 1 to 8 neighbouring
// positions of the vector axis, as many as fill an access of 16 bytes and divide the axis, so that
// no access is masked. The expressions are emitted by the same NestEmitter; only the loops differ:
//   none        an item is a vector: load, compute, store
//   kLanes      an item is a row, shared by neighbouring threads that take its vectors in turn; the
//               lanes of a thread are added as a tree, then the threads by shuffles, then the warps
//               through shared memory
//   kSequential an item is a vector of columns; threads that lie apart share the reduced elements,
//               so that neighbours read neighbouring columns, and meet in shared memory
// Blocks take items by a grid-stride loop. An order of atomic additions would not repeat, and a
// second kernel for partial results is a matter of the graph (passes/split_reductions).
//
// A thread computes several of its steps side by side, all loads first: one access of 16 bytes at a
// time leaves memory waiting. Where a thread has few steps of a row (ThreadMapping::is_kept), its
// loops are unrolled as a whole and every value of an element stays in a register until the last
// sweep that needs it, so that such rows are read once. Longer rows are read again in every sweep,
// from the caches.
#include "codegen/gpu/emit_loops.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "codegen/emit_compute.h"
#include "codegen/gpu/declare_kernel.h"
#include "codegen/gpu/join_threads.h"
#include "codegen/nest_emitter.h"
#include "passes/thread_mapping.h"

namespace sgtc::gpu {
namespace {

class LoopKernel {
 public:
  LoopKernel(llvm::Function* function, const KernelSpec& spec, const ThreadMapping& mapping)
      : builder_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
        spec_(spec),
        nest_(spec.nest),
        mapping_(mapping),
        lanes_(builder_, mapping.lanes),
        thread_(emit_register(builder_, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x)),
        emitter_(builder_, spec, parameters_of(function)),
        joiner_(builder_, mapping, is_row(), thread_) {
    emitter_.position.coordinates.assign(nest_.atoms.size(), nullptr);
  }

  void emit();
  void emit_one_block(bool varies_in_steps);

 private:
  struct Accumulator {
    ExpressionId reduction;
    llvm::AllocaInst* variable;
    llvm::AllocaInst* total;  // of the chains before; null if there is one chain alone
    /// Sums of exp(x - max x): the maximum, f32, that the sum is relative to.
    llvm::AllocaInst* reference = nullptr;
  };

  KernelParameters parameters_of(llvm::Function* function) const {
    KernelParameters parameters;
    for (size_t i = 0; i < spec_.arguments.size(); ++i) {
      parameters.arguments.push_back(function->getArg(static_cast<unsigned>(i)));
    }
    parameters.micro_batch = function->getArg(static_cast<unsigned>(spec_.arguments.size()));
    parameters.lanes = mapping_.lanes;
    parameters.alignment = kArgumentAlignment;
    return parameters;
  }

  // A thread's step in a sweep: where it is, and what is known of its elements.
  struct Turn {
    LanePosition position;
    std::vector<IrValue*> elements;
    IrValue* exists = nullptr;  // it is the thread's; null: always
  };

  bool is_row() const { return nest_.order == ReductionOrder::kLanes; }
  void emit_start();
  void emit_block(IrValue* block);
  void emit_item(IrValue* item);
  void set_item(IrValue* item);
  void set_atoms(IrValue* number, int64_t count, bool reduced);
  void emit_sweep(int32_t sweep);
  void emit_steps(int32_t sweep, const std::vector<Accumulator>& accumulators);
  void emit_varying_steps(int32_t sweep, const std::vector<Accumulator>& accumulators);
  void emit_whole_group(IrValue* first, int32_t sweep,
                        const std::vector<Accumulator>& accumulators);
  Turn make_turn(IrValue* turn);
  Turn make_last_turn(IrValue* first, IrValue* steps);
  std::vector<Turn> make_turns(int64_t begin, int64_t end);
  void emit_turns(std::vector<Turn>& turns, int32_t sweep,
                  const std::vector<Accumulator>& accumulators);
  void emit_group(Turn* first, Turn* last, int32_t sweep,
                  const std::vector<Accumulator>& accumulators);
  void emit_stores(const Turn& turn, int32_t sweep);
  void enter(Turn& turn);
  void leave(Turn& turn);
  void set_step(IrValue* step);
  void emit_row_values(int32_t sweep);
  bool is_element_store(const Store& store) const;
  void store_where(IrValue* condition, const std::vector<const Store*>& stores);
  std::vector<Accumulator> start_reductions(int32_t sweep);
  bool has_chains(const Expression& reduction) const;
  void end_chains(IrValue* turn, const std::vector<Accumulator>& accumulators);
  void accumulate(const Accumulator& accumulator, IrValue* exists);
  IrValue* maximum_so_far(const Accumulator& sum, const std::vector<Accumulator>& accumulators);
  IrValue* base_of(IrValue* reference);
  void rescale(const Accumulator& accumulator, IrValue* base);
  void accumulate_exponential(const Accumulator& accumulator, IrValue* exists);
  IrValue* exponential(const Expression& sum, IrValue* x);
  IrValue* result_of(const Accumulator& accumulator);
  void finish_reduction(const Accumulator& accumulator);
  IrValue* join_lanes(const Expression& reduction, IrValue* lanes);
  IrValue* divided(IrValue* number, int64_t by, int64_t count);
  IrValue* remainder(IrValue* number, int64_t by, int64_t count);
  IrValue* in_words(IrValue* number, int64_t by, int64_t count, llvm::Instruction::BinaryOps op);
  const Expression& expression(ExpressionId id) const {
    return nest_.expressions[static_cast<size_t>(id)];
  }
  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  llvm::IRBuilder<> builder_;
  const KernelSpec& spec_;
  const LoopNest& nest_;
  ThreadMapping mapping_;
  Lanes lanes_;
  IrValue* thread_;
  NestEmitter emitter_;
  ThreadJoiner joiner_;
  IrValue* slice_ = nullptr;   // the thread's among those of its item
  IrValue* vector_ = nullptr;  // the item's, of the vector axis; null if it is all of it
  IrValue* active_ = nullptr;  // the item exists and is not a copy of the last; null: always
  IrValue* items_ = nullptr;   // as in the mapping, if it is known at run time; else null
  IrValue* steps_ = nullptr;   // the same
  std::vector<Turn> kept_;     // of the item, if it stays in registers
  std::vector<std::vector<ExpressionId>> work_ = element_work(nest_);
};

void LoopKernel::emit_start() {
  emitter_.evaluate(Level::kKernel, 0);
  const int64_t items = mapping_.items_per_block();
  slice_ = mapping_.slices == 1 ? i64(0)
           : is_row()           ? builder_.CreateURem(thread_, i64(mapping_.slices))
                                : builder_.CreateUDiv(thread_, i64(items));
}

void LoopKernel::emit() {
  emit_start();
  IrValue* first = emit_register(builder_, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  IrValue* step = emit_register(builder_, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  emit_for(builder_, first, i64(mapping_.blocks()), step, [&](IrValue* b) { emit_block(b); });
  builder_.CreateRetVoid();
}

void LoopKernel::emit_one_block(bool varies_in_steps) {
  emit_start();
  const auto parameter = [&](size_t i) {
    const size_t at = spec_.arguments.size() + 1 + i;
    return builder_.GetInsertBlock()->getParent()->getArg(static_cast<unsigned>(at));
  };
  items_ = parameter(1);
  if (varies_in_steps) steps_ = parameter(2);
  emit_block(parameter(0));
  builder_.CreateRetVoid();
}

// Threads that meet others may not leave the way: beyond the last item they repeat it and store
// nothing.
void LoopKernel::emit_block(IrValue* block) {
  const int64_t items = mapping_.items_per_block();
  IrValue* within = is_row() ? builder_.CreateUDiv(thread_, i64(mapping_.slices))
                             : builder_.CreateURem(thread_, i64(items));
  IrValue* item = builder_.CreateAdd(builder_.CreateMul(block, i64(items)), within);
  if (items_ == nullptr && mapping_.items % items == 0) return emit_item(item);
  IrValue* count = items_ == nullptr ? i64(mapping_.items) : items_;
  IrValue* exists = builder_.CreateICmpSLT(item, count);
  if (mapping_.slices == 1) return emit_if(builder_, exists, [&] { emit_item(item); });
  active_ = exists;
  emit_item(builder_.CreateSelect(exists, item, builder_.CreateSub(count, i64(1))));
}

void LoopKernel::emit_item(IrValue* item) {
  set_item(item);
  kept_.clear();
  emitter_.forget(Level::kRow);
  for (int32_t sweep = 0; sweep < nest_.sweeps; ++sweep) emit_sweep(sweep);
  emit_row_values(nest_.sweeps);
}

void LoopKernel::set_item(IrValue* item) {
  int64_t rows = mapping_.items;
  IrValue* row = item;
  if (!is_row()) {
    vector_ = remainder(item, mapping_.vectors, mapping_.items);
    row = divided(item, mapping_.vectors, mapping_.items);
    rows /= mapping_.vectors;
    emitter_.position.vector_base = builder_.CreateMul(vector_, i64(mapping_.lanes));
  }
  set_atoms(row, rows, false);
}

// Takes the number of a combination of the reduced or parallel atoms before the vector axis apart.
void LoopKernel::set_atoms(IrValue* number, int64_t count, bool reduced) {
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(nest_.vector_begin); i-- > 0;) {
    const Atom& atom = nest_.atoms[i];
    if (atom.reduced != reduced) continue;
    IrValue* coordinate = divided(number, inner, count);
    inner *= atom.extent;
    if (inner < count) coordinate = remainder(coordinate, atom.extent, count);
    emitter_.position.coordinates[i] = coordinate;
  }
}

void LoopKernel::emit_sweep(int32_t sweep) {
  emit_row_values(sweep);
  const std::vector<Accumulator> accumulators = start_reductions(sweep);
  bool has_stores = std::any_of(nest_.stores.begin(), nest_.stores.end(), [&](const Store& store) {
    return is_element_store(store) && sweep_of(nest_, store) == sweep;
  });
  if (has_stores || !accumulators.empty()) emit_steps(sweep, accumulators);
  for (const Accumulator& accumulator : accumulators) finish_reduction(accumulator);
}

// Whole groups of turns in a loop, then the rest.
void LoopKernel::emit_steps(int32_t sweep, const std::vector<Accumulator>& accumulators) {
  if (mapping_.is_kept) {
    if (kept_.empty()) kept_ = make_turns(0, mapping_.turns());
    return emit_turns(kept_, sweep, accumulators);
  }
  if (steps_ != nullptr) return emit_varying_steps(sweep, accumulators);
  const int64_t group = mapping_.together;
  const int64_t grouped = mapping_.steps / mapping_.slices / group * group;
  emit_for(builder_, i64(0), i64(grouped), group,
           [&](IrValue* first) { emit_whole_group(first, sweep, accumulators); });
  std::vector<Turn> rest = make_turns(grouped, mapping_.turns());
  emit_turns(rest, sweep, accumulators);
}

// The same; each turn of the rest may be for some of the threads alone.
void LoopKernel::emit_varying_steps(int32_t sweep, const std::vector<Accumulator>& accumulators) {
  const int64_t group = mapping_.together;
  IrValue* groups = builder_.CreateUDiv(steps_, i64(mapping_.slices * group));
  IrValue* grouped = builder_.CreateMul(groups, i64(group));
  emit_for(builder_, i64(0), grouped, group,
           [&](IrValue* first) { emit_whole_group(first, sweep, accumulators); });
  IrValue* first = builder_.CreateMul(grouped, i64(mapping_.slices));
  emit_for(builder_, first, steps_, mapping_.slices, [&](IrValue* rest) {
    std::vector<Turn> turns = {make_last_turn(rest, steps_)};
    emit_turns(turns, sweep, accumulators);
  });
}

void LoopKernel::emit_whole_group(IrValue* first, int32_t sweep,
                                  const std::vector<Accumulator>& accumulators) {
  std::vector<Turn> turns;
  for (int64_t i = 0; i < mapping_.together; ++i) {
    turns.push_back(make_turn(builder_.CreateAdd(first, i64(i))));
  }
  emit_turns(turns, sweep, accumulators);
  end_chains(builder_.CreateAdd(first, i64(mapping_.together - 1)), accumulators);
}

LoopKernel::Turn LoopKernel::make_turn(IrValue* turn) {
  IrValue* step = builder_.CreateMul(turn, i64(mapping_.slices));
  set_step(builder_.CreateAdd(step, slice_));
  return {emitter_.position, {}, nullptr};
}

// From step `first` on, of the first slices alone. The others repeat a step and drop it, so that
// there is no branch around loads.
LoopKernel::Turn LoopKernel::make_last_turn(IrValue* first, IrValue* steps) {
  IrValue* step = builder_.CreateAdd(first, slice_);
  IrValue* exists = builder_.CreateICmpSLT(step, steps);
  set_step(builder_.CreateSelect(exists, step, builder_.CreateSub(steps, i64(1))));
  return {emitter_.position, {}, exists};
}

std::vector<LoopKernel::Turn> LoopKernel::make_turns(int64_t begin, int64_t end) {
  std::vector<Turn> turns;
  for (int64_t turn = begin; turn < end; ++turn) {
    const bool is_whole = (turn + 1) * mapping_.slices <= mapping_.steps;
    turns.push_back(is_whole ? make_turn(i64(turn))
                             : make_last_turn(i64(turn * mapping_.slices), i64(mapping_.steps)));
  }
  return turns;
}

void LoopKernel::emit_turns(std::vector<Turn>& turns, int32_t sweep,
                            const std::vector<Accumulator>& accumulators) {
  const auto group = static_cast<size_t>(mapping_.together);
  for (size_t first = 0; first < turns.size(); first += group) {
    const size_t last = std::min(first + group, turns.size());
    emit_group(turns.data() + first, turns.data() + last, sweep, accumulators);
  }
}

void LoopKernel::emit_group(Turn* first, Turn* last, int32_t sweep,
                            const std::vector<Accumulator>& accumulators) {
  for (Turn* turn = first; turn != last; ++turn) {
    enter(*turn);
    emitter_.evaluate_loads(work_[static_cast<size_t>(sweep)]);
    leave(*turn);
  }
  for (Turn* turn = first; turn != last; ++turn) {
    enter(*turn);
    for (const Accumulator& accumulator : accumulators) {
      if (accumulator.reference == nullptr) accumulate(accumulator, turn->exists);
    }
    leave(*turn);
  }
  for (const Accumulator& accumulator : accumulators) {
    if (accumulator.reference == nullptr) continue;
    IrValue* reference = maximum_so_far(accumulator, accumulators);
    rescale(accumulator, base_of(reference));
    builder_.CreateStore(reference, accumulator.reference);
  }
  for (Turn* turn = first; turn != last; ++turn) {
    enter(*turn);
    for (const Accumulator& accumulator : accumulators) {
      if (accumulator.reference != nullptr) accumulate_exponential(accumulator, turn->exists);
    }
    emit_stores(*turn, sweep);
    leave(*turn);
  }
}

void LoopKernel::enter(Turn& turn) {
  emitter_.position = turn.position;
  turn.elements = emitter_.exchange_elements(std::move(turn.elements));
}

void LoopKernel::leave(Turn& turn) {
  turn.elements = emitter_.exchange_elements(std::move(turn.elements));
}

// All values first, then what changes memory.
void LoopKernel::emit_stores(const Turn& turn, int32_t sweep) {
  std::vector<const Store*> stores;
  for (const Store& store : nest_.stores) {
    if (!is_element_store(store) || sweep_of(nest_, store) != sweep) continue;
    emitter_.evaluate_operands(store);
    stores.push_back(&store);
  }
  IrValue* condition = active_;
  if (turn.exists != nullptr) {
    condition = active_ == nullptr ? turn.exists : builder_.CreateAnd(active_, turn.exists);
  }
  store_where(condition, stores);
}

void LoopKernel::set_step(IrValue* step) {
  IrValue* combination = step;
  int64_t count = mapping_.steps;
  if (is_row()) {
    IrValue* vector = remainder(step, mapping_.vectors, count);
    emitter_.position.vector_base = builder_.CreateMul(vector, i64(mapping_.lanes));
    combination = divided(step, mapping_.vectors, count);
    count /= mapping_.vectors;
  }
  if (nest_.order != ReductionOrder::kNone) set_atoms(combination, count, true);
}

// Values and stores of the item that are known after `sweep` sweeps. One of the threads that share
// it stores; where that overwrites what they all have read, they wait for each other.
void LoopKernel::emit_row_values(int32_t sweep) {
  emitter_.evaluate(Level::kRow, sweep);
  std::vector<const Store*> stores;
  bool overwrites = false;
  for (const Store& store : nest_.stores) {
    if (is_element_store(store) || sweep_of(nest_, store) != sweep) continue;
    emitter_.value(store.value);
    stores.push_back(&store);
    const KernelArgument& argument = spec_.arguments[static_cast<size_t>(store.argument)];
    overwrites = overwrites || !argument.may_alias.empty() || argument.mode == AccessMode::kUpdate;
  }
  if (overwrites && mapping_.slices > 1) emit_barrier(builder_);
  IrValue* is_first = builder_.CreateICmpEQ(slice_, i64(0));
  if (nest_.order == ReductionOrder::kNone) is_first = builder_.CreateICmpEQ(vector_, i64(0));
  if (active_ != nullptr) is_first = builder_.CreateAnd(is_first, active_);
  store_where(is_first, stores);
}

void LoopKernel::store_where(IrValue* condition, const std::vector<const Store*>& stores) {
  if (stores.empty()) return;
  auto store_all = [&] {
    for (const Store* store : stores) emitter_.store(*store);
  };
  condition == nullptr ? store_all() : emit_if(builder_, condition, store_all);
}

bool LoopKernel::is_element_store(const Store& store) const {
  if (expression(store.value).level == Level::kElement) return true;
  for (size_t i = 0; i < nest_.atoms.size(); ++i) {
    bool is_element_atom = nest_.order == ReductionOrder::kNone
                               ? static_cast<int32_t>(i) >= nest_.vector_begin
                               : nest_.atoms[i].reduced;
    if (is_element_atom && store.index.coefficients[i] != 0) return true;
  }
  return false;
}

// ---- Reductions

std::vector<LoopKernel::Accumulator> LoopKernel::start_reductions(int32_t sweep) {
  std::vector<Accumulator> accumulators;
  for (size_t id = 0; id < nest_.expressions.size(); ++id) {
    const Expression& reduction = nest_.expressions[id];
    if (reduction.kind != Expression::Kind::kReduce || reduction.depth != sweep + 1) continue;
    llvm::Type* type = lanes_.type(reduction.dtype);
    Accumulator accumulator{static_cast<ExpressionId>(id), emit_variable(builder_, type), nullptr,
                            nullptr};
    builder_.CreateStore(emit_identity(builder_, reduction.op, reduction.dtype, mapping_.lanes),
                         accumulator.variable);
    if (reduction.operands.size() == 2) {
      accumulator.reference = emit_variable(builder_, builder_.getFloatTy());
      builder_.CreateStore(llvm::ConstantFP::getInfinity(builder_.getFloatTy(), true),
                           accumulator.reference);
    } else if (has_chains(reduction)) {
      accumulator.total = emit_variable(builder_, type);
      builder_.CreateStore(lanes_.zero(reduction.dtype), accumulator.total);
    }
    accumulators.push_back(accumulator);
  }
  return accumulators;
}

bool LoopKernel::has_chains(const Expression& reduction) const {
  return reduction.op == Op::kReduceSum && is_float(reduction.dtype) &&
         mapping_.turns() > kChainSteps;
}

// Ends the chains whose last turn is `turn`.
void LoopKernel::end_chains(IrValue* turn, const std::vector<Accumulator>& accumulators) {
  bool any = std::any_of(accumulators.begin(), accumulators.end(),
                         [](const Accumulator& a) { return a.total != nullptr; });
  if (!any) return;
  IrValue* in_chain = builder_.CreateURem(turn, i64(kChainSteps));
  emit_if(builder_, builder_.CreateICmpEQ(in_chain, i64(kChainSteps - 1)), [&] {
    for (const Accumulator& accumulator : accumulators) {
      if (accumulator.total == nullptr) continue;
      builder_.CreateStore(result_of(accumulator), accumulator.total);
      builder_.CreateStore(lanes_.zero(expression(accumulator.reduction).dtype),
                           accumulator.variable);
    }
  });
}

void LoopKernel::accumulate(const Accumulator& accumulator, IrValue* exists) {
  const Expression& reduction = expression(accumulator.reduction);
  IrValue* operand = emitter_.value(reduction.operands[0]);
  IrValue* old = builder_.CreateLoad(lanes_.type(reduction.dtype), accumulator.variable);
  IrValue* combined = emit_combine(builder_, reduction.op, reduction.dtype, old, operand);
  if (exists != nullptr) combined = builder_.CreateSelect(exists, combined, old);
  builder_.CreateStore(combined, accumulator.variable);
}

// ---- Sums of exp(x - max x) beside the maximum: relative to the maximum of what the thread has
// seen.

// Of all lanes, as the sum's maximum stands now.
IrValue* LoopKernel::maximum_so_far(const Accumulator& sum,
                                    const std::vector<Accumulator>& accumulators) {
  const ExpressionId maximum = expression(sum.reduction).operands[1];
  const auto at = std::find_if(accumulators.begin(), accumulators.end(),
                               [&](const Accumulator& a) { return a.reduction == maximum; });
  const Expression& reduction = expression(maximum);
  IrValue* lanes = builder_.CreateLoad(lanes_.type(reduction.dtype), at->variable);
  return builder_.CreateExtractElement(join_lanes(reduction, lanes), uint64_t{0});
}

// What terms are relative to: 0 while all has been -infinity, so that they are 0.
IrValue* LoopKernel::base_of(IrValue* reference) {
  llvm::Type* type = builder_.getFloatTy();
  IrValue* lowest = llvm::ConstantFP::getInfinity(type, true);
  return builder_.CreateSelect(builder_.CreateFCmpOEQ(reference, lowest),
                               llvm::ConstantFP::get(type, 0), reference);
}

// From exp(x - old) to exp(x - base).
void LoopKernel::rescale(const Accumulator& accumulator, IrValue* base) {
  const Expression& sum = expression(accumulator.reduction);
  IrValue* old = builder_.CreateLoad(builder_.getFloatTy(), accumulator.reference);
  IrValue* factor = exponential(sum, lanes_.splat(builder_.CreateFSub(old, base)));
  IrValue* scaled = builder_.CreateLoad(lanes_.type(sum.dtype), accumulator.variable);
  builder_.CreateStore(builder_.CreateFMul(scaled, factor), accumulator.variable);
}

void LoopKernel::accumulate_exponential(const Accumulator& accumulator, IrValue* exists) {
  const Expression& sum = expression(accumulator.reduction);
  IrValue* base = base_of(builder_.CreateLoad(builder_.getFloatTy(), accumulator.reference));
  IrValue* x = emitter_.value(sum.operands[0]);
  IrValue* term = exponential(sum, builder_.CreateFSub(x, lanes_.splat(base)));
  IrValue* old = builder_.CreateLoad(lanes_.type(sum.dtype), accumulator.variable);
  IrValue* combined = builder_.CreateFAdd(old, term);
  if (exists != nullptr) combined = builder_.CreateSelect(exists, combined, old);
  builder_.CreateStore(combined, accumulator.variable);
}

IrValue* LoopKernel::exponential(const Expression& sum, IrValue* x) {
  Expression function;
  function.kind = Expression::Kind::kCompute;
  function.op = Op::kExp;
  function.dtype = sum.dtype;
  function.integer = sum.integer;
  return emit_compute(builder_, function, {x}, {sum.dtype});
}

// The chains that have ended, and the one that has not.
IrValue* LoopKernel::result_of(const Accumulator& accumulator) {
  const DType dtype = expression(accumulator.reduction).dtype;
  IrValue* last = builder_.CreateLoad(lanes_.type(dtype), accumulator.variable);
  if (accumulator.total == nullptr) return last;
  IrValue* total = builder_.CreateLoad(lanes_.type(dtype), accumulator.total);
  return emit_combine(builder_, Op::kReduceSum, dtype, total, last);
}

void LoopKernel::finish_reduction(const Accumulator& accumulator) {
  const Expression& reduction = expression(accumulator.reduction);
  // A row of -infinity alone gives NaN, as the difference does.
  if (accumulator.reference != nullptr) {
    IrValue* maximum = emitter_.value(reduction.operands[1]);
    rescale(accumulator, builder_.CreateExtractElement(maximum, uint64_t{0}));
  }
  IrValue* result = result_of(accumulator);
  if (is_row()) result = join_lanes(reduction, result);
  result = joiner_.join(reduction.op, reduction.dtype, result);
  if (is_row()) result = lanes_.splat(builder_.CreateExtractElement(result, uint64_t{0}));
  emitter_.set(accumulator.reduction, lanes_.round(result, reduction.dtype));
}

// The tree: lane i takes in lane i + lanes / 2, then + lanes / 4 … 1; a vector of one lane is left.
IrValue* LoopKernel::join_lanes(const Expression& reduction, IrValue* lanes) {
  for (int distance = static_cast<int>(mapping_.lanes) / 2; distance > 0; distance /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < distance; ++lane) {
      low.push_back(lane);
      high.push_back(lane + distance);
    }
    lanes = emit_combine(builder_, reduction.op, reduction.dtype,
                         builder_.CreateShuffleVector(lanes, low),
                         builder_.CreateShuffleVector(lanes, high));
  }
  return lanes;
}

// ---- Divisions of numbers in [0, count), in 32 bits where that is enough: a GPU has no
// instruction for longer ones.

IrValue* LoopKernel::in_words(IrValue* number, int64_t by, int64_t count,
                              llvm::Instruction::BinaryOps op) {
  if (count > INT32_MAX) return builder_.CreateBinOp(op, number, i64(by));
  llvm::Type* word = builder_.getInt32Ty();
  IrValue* narrow = builder_.CreateTrunc(number, word);
  IrValue* result =
      builder_.CreateBinOp(op, narrow, llvm::ConstantInt::get(word, static_cast<uint64_t>(by)));
  return builder_.CreateZExt(result, builder_.getInt64Ty());
}

IrValue* LoopKernel::divided(IrValue* number, int64_t by, int64_t count) {
  if (by == 1) return number;
  return by >= count ? i64(0) : in_words(number, by, count, llvm::Instruction::UDiv);
}

IrValue* LoopKernel::remainder(IrValue* number, int64_t by, int64_t count) {
  if (by == 1) return i64(0);
  return by >= count ? number : in_words(number, by, count, llvm::Instruction::URem);
}

}  // namespace

void emit_loop_kernel(llvm::Module& module, const KernelSpec& spec) {
  LoopKernel(declare_kernel(module, spec), spec, map_threads(spec.nest)).emit();
}

llvm::Function* emit_loop_body(llvm::Module& module, const std::string& name,
                               const KernelSpec& spec, const ThreadMapping& mapping,
                               bool varies_in_steps) {
  llvm::LLVMContext& context = module.getContext();
  std::vector<llvm::Type*> parameters(spec.arguments.size(),
                                      llvm::PointerType::get(context, kGlobalMemory));
  parameters.insert(parameters.end(), 4, llvm::Type::getInt64Ty(context));
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  for (const auto attribute :
       {llvm::Attribute::NoUnwind, llvm::Attribute::Convergent, llvm::Attribute::AlwaysInline}) {
    function->addFnAttr(attribute);
  }
  set_argument_attributes(function, spec);
  LoopKernel(function, spec, mapping).emit_one_block(varies_in_steps);
  return function;
}

}  // namespace sgtc::gpu
