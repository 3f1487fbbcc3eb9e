// Code of loop kernels: explicit vectors of 16 lanes.
//
// The problem. A nest must run at the speed of memory on any shape: 1000 columns or 7, broadcast,
// strided and gathered operands, rows of softmax, columns of a bias gradient; and its bits may not
// depend on how it was vectorised.
//
// Scalar loops and LLVM's vectoriser are the obvious choice. They lose here: without reassociation
// a float reduction is not vectorised at all, calls of the math library are not known to it,
// remainder loops run scalar code that rounds differently from the vector math, and compile time
// doubles. So every value is 16 lanes from the start, whatever the target's registers: LLVM splits
// them into two or four. The order of a reduction is part of its meaning (loop_nest.h), so it is
// written out. A remainder is the same body once more under a constant mask.
//
// One function runs blocks [begin, end). A block is a range of rows by a range of the vector axis
// (BlockGrid). Inside, by the order of the nest's reductions:
//   none        row: row values; vectors of the row: load, compute, store
//   kLanes      row: sweeps over the reduced atoms, the innermost suffix as vectors; one
//               accumulator of 16 lanes per reduction, joined by a tree
//   kSequential row: 64 columns as four vectors side by side, so that a cache line is used whole;
//               sweeps over the reduced atoms, one after the other
// Float sums of more than 64 steps have a second accumulator that takes in the first one every 64
// steps; the test is a branch that is nearly always predicted. Cutting the loops instead would need
// no test, but several reduced atoms do not fall into ranges of 64 steps.
// Values that do not change in a loop are evaluated before it (Level), so nothing depends on LLVM
// proving that stores and loads do not overlap.
#include "codegen/emit_loops.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "codegen/control_flow.h"
#include "codegen/emit_compute.h"
#include "codegen/nest_emitter.h"

namespace sgtc {
namespace {

llvm::Function* declare_kernel(llvm::Module& module, const std::string& symbol) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {llvm::PointerType::get(context, 0), i64, i64, i64}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  constexpr std::array names = {"arguments", "begin", "end", "micro_batch"};
  for (unsigned i = 0; i < names.size(); ++i) function->getArg(i)->setName(names[i]);
  return function;
}

class LoopKernel {
 public:
  LoopKernel(llvm::Function* function, const KernelSpec& spec)
      : function_(function),
        builder_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
        lanes_(builder_),
        spec_(spec),
        nest_(spec.nest),
        grid_(block_grid(spec.nest)) {}

  void emit() {
    emit_if(builder_, builder_.CreateICmpSLT(function_->getArg(1), function_->getArg(2)), [&] {
      KernelParameters parameters;
      parameters.arguments = load_arguments(builder_, function_->getArg(0), spec_.arguments.size());
      parameters.micro_batch = function_->getArg(3);
      for (int64_t i = 0; i < units_wanted(); ++i) {
        units_.push_back(std::make_unique<NestEmitter>(builder_, spec_, parameters));
        units_.back()->position.coordinates.assign(nest_.atoms.size(), nullptr);
        units_.back()->evaluate(Level::kKernel, 0);
      }
      emit_for(builder_, function_->getArg(1), function_->getArg(2), 1,
               [&](IrValue* block) { emit_block(block); });
    });
    builder_.CreateRetVoid();
  }

 private:
  struct Accumulator {
    ExpressionId reduction;
    size_t unit;
    llvm::AllocaInst* variable;
    llvm::AllocaInst* total;  // of the chains before; null if there is one chain alone
  };

  // Vectors that are computed side by side.
  int64_t units_wanted() const {
    if (nest_.order != ReductionOrder::kSequential) return 1;
    return (grid_.columns_per_block + kLanes - 1) / kLanes;
  }

  void emit_block(IrValue* block) {
    IrValue* row_block =
        grid_.column_blocks == 1 ? block : builder_.CreateUDiv(block, i64(grid_.column_blocks));
    IrValue* column_block =
        grid_.column_blocks == 1 ? i64(0) : builder_.CreateURem(block, i64(grid_.column_blocks));
    IrValue* first = builder_.CreateMul(row_block, i64(grid_.rows_per_block));
    IrValue* last = builder_.CreateAdd(first, i64(grid_.rows_per_block));
    if (grid_.rows % grid_.rows_per_block != 0) last = smaller(last, i64(grid_.rows));
    if (grid_.row_blocks == 1) {
      first = i64(0);
      last = i64(grid_.rows);
    }
    emit_for(builder_, first, last, 1, [&](IrValue* row) {
      set_row(row);
      for (auto& unit : units_) unit->forget(Level::kRow);
      emit_row(column_block);
    });
  }

  void emit_row(IrValue* column_block) {
    IrValue* begin = builder_.CreateMul(column_block, i64(grid_.columns_per_block));
    if (nest_.order == ReductionOrder::kNone) {
      emit_row_values(0);
      IrValue* end =
          smaller(builder_.CreateAdd(begin, i64(grid_.columns_per_block)), i64(grid_.columns));
      emit_vectors(begin, end, [&] { emit_body(0, {}); });
    } else if (nest_.order == ReductionOrder::kLanes) {
      emit_sweeps(1);
    } else {
      emit_columns(column_block, begin);
    }
  }

  // Takes the number of a row apart into the coordinates of the parallel atoms.
  void set_row(IrValue* row) {
    int64_t inner = 1;
    for (size_t i = static_cast<size_t>(nest_.vector_begin); i-- > 0;) {
      const Atom& atom = nest_.atoms[i];
      if (atom.reduced) continue;
      IrValue* coordinate = inner == 1 ? row : builder_.CreateUDiv(row, i64(inner));
      inner *= atom.extent;
      if (inner < grid_.rows) coordinate = builder_.CreateURem(coordinate, i64(atom.extent));
      set_coordinate(i, coordinate);
    }
  }

  void set_coordinate(size_t atom, IrValue* coordinate) {
    for (auto& unit : units_) unit->position.coordinates[atom] = coordinate;
  }

  // Values and stores of the row that are known after `sweep` sweeps.
  void emit_row_values(int32_t sweep, size_t units = 1) {
    for (size_t i = 0; i < units; ++i) {
      units_[i]->evaluate(Level::kRow, sweep);
      for (const Store& store : nest_.stores) {
        if (!is_element_store(store) && sweep_of(nest_, store) == sweep) units_[i]->store(store);
      }
    }
  }

  bool is_element_store(const Store& store) const {
    if (nest_.expressions[static_cast<size_t>(store.value)].level == Level::kElement) return true;
    for (size_t i = 0; i < nest_.atoms.size(); ++i) {
      bool element_atom = nest_.order == ReductionOrder::kNone
                              ? static_cast<int32_t>(i) >= nest_.vector_begin
                              : nest_.atoms[i].reduced;
      if (element_atom && store.index.coefficients[i] != 0) return true;
    }
    return false;
  }

  // The vector axis from `begin` to `end` for unit 0: whole vectors, then the remainder at the end
  // of the axis under a constant mask.
  void emit_vectors(IrValue* begin, IrValue* end, const std::function<void()>& body) {
    LanePosition& position = units_[0]->position;
    int64_t remainder = grid_.columns % kLanes;
    IrValue* whole = i64(grid_.columns - remainder);
    position.mask = nullptr;
    if (grid_.columns >= kLanes) {
      emit_for(builder_, begin, remainder == 0 ? end : smaller(end, whole), kLanes,
               [&](IrValue* at) {
                 position.vector_base = at;
                 body();
               });
    }
    if (remainder == 0) return;
    emit_if(builder_, builder_.CreateICmpEQ(end, i64(grid_.columns)), [&] {
      position.vector_base = whole;
      position.mask = lanes_.mask_of_first(remainder);
      body();
    });
    position.mask = nullptr;
  }

  // Blocks of whole vectors, and the last one if it is shorter.
  void emit_columns(IrValue* column_block, IrValue* begin) {
    int64_t last_columns = grid_.columns % grid_.columns_per_block;
    int64_t whole_blocks = grid_.columns / grid_.columns_per_block;
    auto emit = [&](int64_t columns) {
      size_t units = static_cast<size_t>((columns + kLanes - 1) / kLanes);
      for (size_t i = 0; i < units; ++i) {
        LanePosition& position = units_[i]->position;
        int64_t offset = static_cast<int64_t>(i) * kLanes;
        int64_t left = columns - offset;
        position.vector_base = builder_.CreateAdd(begin, i64(offset));
        position.mask = left < kLanes ? lanes_.mask_of_first(left) : nullptr;
        units_[i]->forget(Level::kRow);
      }
      emit_sweeps(units);
    };
    if (whole_blocks > 0) {
      emit_if(builder_, builder_.CreateICmpSLT(column_block, i64(whole_blocks)),
              [&] { emit(grid_.columns_per_block); });
    }
    if (last_columns > 0) {
      emit_if(builder_, builder_.CreateICmpEQ(column_block, i64(whole_blocks)),
              [&] { emit(last_columns); });
    }
  }

  void emit_sweeps(size_t units) {
    for (int32_t sweep = 0; sweep < nest_.sweeps; ++sweep) {
      emit_row_values(sweep, units);
      std::vector<Accumulator> accumulators = start_reductions(sweep, units);
      bool has_work = !accumulators.empty() ||
                      std::any_of(nest_.stores.begin(), nest_.stores.end(), [&](const Store& s) {
                        return is_element_store(s) && sweep_of(nest_, s) == sweep;
                      });
      if (has_work) emit_reduced_loops(0, i64(0), sweep, accumulators, units);
      finish_reductions(accumulators);
    }
    emit_row_values(nest_.sweeps, units);
  }

  // Loops over the reduced atoms from `atom` on, then the body for each unit. `row` numbers the
  // combinations of the reduced atoms before.
  void emit_reduced_loops(size_t atom, IrValue* row, int32_t sweep,
                          const std::vector<Accumulator>& accumulators, size_t units) {
    size_t end = static_cast<size_t>(nest_.vector_begin);
    while (atom < end && !nest_.atoms[atom].reduced) ++atom;
    if (atom < end) {
      emit_for(builder_, i64(0), i64(nest_.atoms[atom].extent), 1, [&](IrValue* coordinate) {
        set_coordinate(atom, coordinate);
        IrValue* before = builder_.CreateMul(row, i64(nest_.atoms[atom].extent));
        emit_reduced_loops(atom + 1, builder_.CreateAdd(before, coordinate), sweep, accumulators,
                           units);
      });
      return;
    }
    if (nest_.order == ReductionOrder::kLanes) {
      IrValue* before = builder_.CreateMul(row, i64(vectors_per_row()));
      emit_vectors(i64(0), i64(grid_.columns), [&] {
        emit_body(sweep, accumulators);
        IrValue* vector = builder_.CreateUDiv(units_[0]->position.vector_base, i64(kLanes));
        end_chains(builder_.CreateAdd(before, vector), accumulators);
      });
      return;
    }
    for (size_t i = 0; i < units; ++i) emit_body(sweep, accumulators, i);
    end_chains(row, accumulators);
  }

  // One vector of one sweep: all values first, then what changes memory.
  void emit_body(int32_t sweep, const std::vector<Accumulator>& accumulators, size_t unit = 0) {
    NestEmitter& emitter = *units_[unit];
    emitter.forget(Level::kElement);
    for (const Accumulator& accumulator : accumulators) {
      if (accumulator.unit == unit) accumulate(accumulator);
    }
    std::vector<const Store*> stores;
    for (const Store& store : nest_.stores) {
      if (!is_element_store(store) || sweep_of(nest_, store) != sweep) continue;
      emitter.value(store.value);
      stores.push_back(&store);
    }
    for (const Store* store : stores) emitter.store(*store);
  }

  std::vector<Accumulator> start_reductions(int32_t sweep, size_t units) {
    std::vector<Accumulator> accumulators;
    for (size_t id = 0; id < nest_.expressions.size(); ++id) {
      const Expression& reduction = nest_.expressions[id];
      bool here = reduction.kind == Expression::Kind::kReduce && reduction.depth == sweep + 1;
      for (size_t unit = 0; here && unit < units; ++unit) {
        llvm::AllocaInst* variable = emit_variable(builder_, lanes_.type(reduction.dtype));
        builder_.CreateStore(emit_identity(builder_, reduction.op, reduction.dtype), variable);
        accumulators.push_back({static_cast<ExpressionId>(id), unit, variable, nullptr});
        if (!has_chains(reduction)) continue;
        accumulators.back().total = emit_variable(builder_, lanes_.type(reduction.dtype));
        builder_.CreateStore(lanes_.zero(reduction.dtype), accumulators.back().total);
      }
    }
    return accumulators;
  }

  int64_t vectors_per_row() const { return (grid_.columns + kLanes - 1) / kLanes; }

  // Whether a reduction is a sum of several chains.
  bool has_chains(const Expression& reduction) const {
    int64_t steps = reduced_extent(nest_);
    if (nest_.order == ReductionOrder::kLanes) steps = steps / grid_.columns * vectors_per_row();
    return reduction.op == Op::kReduceSum && is_float(reduction.dtype) && steps > kChainSteps;
  }

  // Ends the chains whose last step is `step`.
  void end_chains(IrValue* step, const std::vector<Accumulator>& accumulators) {
    if (std::none_of(accumulators.begin(), accumulators.end(),
                     [](const Accumulator& a) { return a.total != nullptr; })) {
      return;
    }
    IrValue* in_chain = builder_.CreateURem(step, i64(kChainSteps));
    emit_if(builder_, builder_.CreateICmpEQ(in_chain, i64(kChainSteps - 1)), [&] {
      for (const Accumulator& accumulator : accumulators) {
        if (accumulator.total == nullptr) continue;
        DType dtype = nest_.expressions[static_cast<size_t>(accumulator.reduction)].dtype;
        builder_.CreateStore(result_of(accumulator), accumulator.total);
        builder_.CreateStore(lanes_.zero(dtype), accumulator.variable);
      }
    });
  }

  // The chains that have ended, and the one that has not.
  IrValue* result_of(const Accumulator& accumulator) {
    DType dtype = nest_.expressions[static_cast<size_t>(accumulator.reduction)].dtype;
    IrValue* last = builder_.CreateLoad(lanes_.type(dtype), accumulator.variable);
    if (accumulator.total == nullptr) return last;
    IrValue* total = builder_.CreateLoad(lanes_.type(dtype), accumulator.total);
    return emit_combine(builder_, Op::kReduceSum, dtype, total, last);
  }

  void accumulate(const Accumulator& accumulator) {
    const Expression& reduction = nest_.expressions[static_cast<size_t>(accumulator.reduction)];
    NestEmitter& emitter = *units_[accumulator.unit];
    IrValue* operand = emitter.value(reduction.operands[0]);
    IrValue* old = builder_.CreateLoad(lanes_.type(reduction.dtype), accumulator.variable);
    IrValue* combined = emit_combine(builder_, reduction.op, reduction.dtype, old, operand);
    bool masked = emitter.position.mask != nullptr && nest_.order == ReductionOrder::kLanes;
    if (masked) combined = builder_.CreateSelect(emitter.position.mask, combined, old);
    builder_.CreateStore(combined, accumulator.variable);
  }

  void finish_reductions(const std::vector<Accumulator>& accumulators) {
    for (const Accumulator& accumulator : accumulators) {
      const Expression& reduction = nest_.expressions[static_cast<size_t>(accumulator.reduction)];
      IrValue* result = result_of(accumulator);
      if (nest_.order == ReductionOrder::kLanes) result = join_lanes(reduction, result);
      units_[accumulator.unit]->set(accumulator.reduction, lanes_.round(result, reduction.dtype));
    }
  }

  // The tree: lane i takes in lane i + 8, then + 4, + 2, + 1; all lanes get the result.
  IrValue* join_lanes(const Expression& reduction, IrValue* lanes) {
    for (int distance = static_cast<int>(kLanes) / 2; distance > 0; distance /= 2) {
      std::vector<int> order;
      for (int lane = 0; lane < kLanes; ++lane) order.push_back((lane + distance) % kLanes);
      IrValue* other = builder_.CreateShuffleVector(lanes, order);
      lanes = emit_combine(builder_, reduction.op, reduction.dtype, lanes, other);
    }
    return lanes_.splat(builder_.CreateExtractElement(lanes, uint64_t{0}));
  }

  IrValue* smaller(IrValue* a, IrValue* b) {
    if (llvm::isa<llvm::ConstantInt>(a) && llvm::isa<llvm::ConstantInt>(b)) {
      return llvm::cast<llvm::ConstantInt>(a)->getSExtValue() <
                     llvm::cast<llvm::ConstantInt>(b)->getSExtValue()
                 ? a
                 : b;
    }
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }

  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  llvm::Function* function_;
  llvm::IRBuilder<> builder_;
  Lanes lanes_;
  const KernelSpec& spec_;
  const LoopNest& nest_;
  BlockGrid grid_;
  std::vector<std::unique_ptr<NestEmitter>> units_;
};

}  // namespace

void emit_loop_kernel(llvm::Module& module, const KernelSpec& spec) {
  LoopKernel(declare_kernel(module, spec.symbol), spec).emit();
}

}  // namespace sgtc
