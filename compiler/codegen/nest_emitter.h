// LLVM IR of the expressions and stores of a loop nest at one position of its loops.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "codegen/lanes.h"
#include "passes/kernel.h"

namespace sgtc {

/// Where the loops stand: consecutive positions of the vector axis, one per lane, at one
/// combination of the other coordinates.
struct LanePosition {
  std::vector<IrValue*> coordinates;  // i64 of the atoms before the vector axis
  IrValue* vector_base = nullptr;     // i64, the first lane's position on the vector axis
  IrValue* mask = nullptr;            // of i1; null: all lanes are in range
  bool is_aligned = true;             // vector_base is a multiple of the lanes
};

/// The parameters of a kernel function, and how many lanes it computes at once.
struct KernelParameters {
  std::vector<IrValue*> arguments;  // a pointer per argument of the spec
  IrValue* micro_batch = nullptr;   // i64; may be null if the nest does not need it
  int64_t lanes = kLanes;
  int64_t alignment = 1;  // of the arguments, in bytes; 1: that of their elements
};

/// Loads the `count` pointers in an array at the builder's position.
std::vector<IrValue*> load_arguments(llvm::IRBuilder<>& builder, IrValue* array, size_t count);

class NestEmitter {
 public:
  /// `spec` must outlive the emitter.
  NestEmitter(llvm::IRBuilder<>& builder, const KernelSpec& spec, KernelParameters parameters);

  LanePosition position;
  /// The anchor's result at the position: floats, not yet rounded to its dtype.
  IrValue* given = nullptr;

  /// The expression at the position. Values are kept until `forget`, so everything that a loop's
  /// body needs from outside must have been evaluated before the loop.
  IrValue* value(ExpressionId id);
  /// Sets the result of a reduction.
  void set(ExpressionId id, IrValue* value) { values_[static_cast<size_t>(id)] = value; }
  /// What a load without guards reads of consecutive memory, as it is there; `set_loaded` at the
  /// same position makes it the value of the load.
  IrValue* load_raw(ExpressionId id);
  void set_loaded(ExpressionId id, IrValue* raw);
  /// The type of both: pairs where that is possible, else elements.
  llvm::FixedVectorType* raw_type(ExpressionId id);
  /// Forgets the values of this level.
  void forget(Level level);
  /// Evaluates all expressions of a level and depth, reductions excepted.
  void evaluate(Level level, int32_t depth);
  /// Those loads of `work` whose place does not depend on other elements.
  void evaluate_loads(const std::vector<ExpressionId>& work);
  void evaluate_operands(const Store& store);
  /// Makes `values` those of element level that are known, and returns what were: each position
  /// that is computed beside others has its own.
  std::vector<IrValue*> exchange_elements(std::vector<IrValue*> values);
  /// Writes an evaluated value.
  void store(const Store& store);
  /// Prefetches what the loads of element level without computed indices read at the position, and
  /// what the stores write there, if that is consecutive.
  void prefetch_elements();
  /// The address of the first lane of a load without computed indices.
  IrValue* address_of(const Expression& load);

 private:
  // base + stride * lane + offsets[lane].
  struct LaneIndex {
    IrValue* base = nullptr;
    int64_t stride = 0;
    IrValue* offsets = nullptr;  // i64 of each lane, or null
    bool is_uniform() const { return stride == 0 && offsets == nullptr; }
    bool is_consecutive() const { return stride == 1 && offsets == nullptr; }
  };

  IrValue* emit(ExpressionId id);
  IrValue* load(const Expression& expression);
  IrValue* load_uniform(const Expression& expression, IrValue* index, IrValue* guard);
  IrValue* load_whole(const Expression& expression, IrValue* index, IrValue* guard);
  IrValue* load_vector(const Expression& expression, IrValue* index, IrValue* guard);
  llvm::FixedVectorType* raw_type(const Expression& expression);
  IrValue* from_raw(IrValue* raw, DType dtype) const;
  void store_vector(IrValue* lanes, DType dtype, IrValue* to, llvm::Align align);
  void store_scattered(IrValue* lanes, IrValue* pointers, llvm::Align align);
  IrValue* load_scattered(const Expression& expression, const LaneIndex& index, IrValue* guard);
  IrValue* compute(const Expression& expression);
  IrValue* checked(const Expression& expression);
  void report(IrValue* bad, IrValue* index, int64_t extent);
  IrValue* random(const Expression& expression);
  LaneIndex lane_index(const AffineIndex& index);
  void add_vector_atoms(const AffineIndex& index, LaneIndex& result);
  void add_computed(const AffineIndex& index, LaneIndex& result);
  IrValue* lane_coordinate(size_t atom);
  IrValue* per_lane(const LaneIndex& index);
  IrValue* scaled(IrValue* value, int64_t factor);
  IrValue* sum(IrValue* a, IrValue* b);
  // i1 of each lane: whether all guards hold; null without guards.
  IrValue* guard_mask(const std::vector<Guard>& guards);
  bool is_uniform(const std::vector<Guard>& guards);
  IrValue* both(IrValue* a, IrValue* b);
  // What the address of a vector at `index` is a multiple of, in bytes.
  llvm::Align alignment_at(const AffineIndex& index, DType dtype, int64_t further = 0) const;
  IrValue* address(int32_t argument, DType dtype, IrValue* index);
  void prefetch(IrValue* from, bool writes);
  bool depends_on_lane(const AffineIndex& index) const;
  void find_lane_dependences();
  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  llvm::IRBuilder<>& builder_;
  Lanes lanes_;
  const KernelSpec& spec_;
  const LoopNest& nest_;
  KernelParameters parameters_;
  std::vector<IrValue*> values_;  // per expression
  std::vector<bool> varies_;      // per expression: may differ between lanes
};

}  // namespace sgtc
