// LLVM IR of the expressions and stores of a loop nest at one position of its loops.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "codegen/lanes.h"
#include "passes/kernel.h"

namespace sgtc {

/// Where the loops stand: 16 consecutive positions of the vector axis at one combination of the
/// other coordinates.
struct LanePosition {
  std::vector<IrValue*> coordinates;  // i64 of the atoms before the vector axis
  IrValue* vector_base = nullptr;     // i64, the first lane's position on the vector axis
  IrValue* mask = nullptr;            // <16 x i1>; null: all lanes are in range
  bool is_aligned = true;             // vector_base is a multiple of 16
};

/// The parameters of a kernel function.
struct KernelParameters {
  IrValue* arguments = nullptr;    // ptr to the pointers of the arguments
  IrValue* micro_batch = nullptr;  // i64; may be null if the nest does not need it
};

class NestEmitter {
 public:
  /// `spec` must outlive the emitter. Loads the pointers of all arguments at the builder's
  /// position.
  NestEmitter(llvm::IRBuilder<>& builder, const KernelSpec& spec, KernelParameters parameters);

  LanePosition position;
  /// The anchor's result at the position: <16 x float>, not yet rounded to its dtype.
  IrValue* given = nullptr;

  /// The expression at the position. Values are kept until `forget`, so everything that a loop's
  /// body needs from outside must have been evaluated before the loop.
  IrValue* value(ExpressionId id);
  /// Sets the result of a reduction.
  void set(ExpressionId id, IrValue* value) { values_[static_cast<size_t>(id)] = value; }
  /// Forgets the values of this level.
  void forget(Level level);
  /// Evaluates all expressions of a level and depth, reductions excepted.
  void evaluate(Level level, int32_t depth);
  /// Writes an evaluated value.
  void store(const Store& store);

 private:
  // base + stride * lane + offsets[lane].
  struct LaneIndex {
    IrValue* base = nullptr;
    int64_t stride = 0;
    IrValue* offsets = nullptr;  // <16 x i64> or null
    bool is_uniform() const { return stride == 0 && offsets == nullptr; }
  };

  IrValue* emit(ExpressionId id);
  IrValue* load(const Expression& expression);
  IrValue* load_uniform(const Expression& expression, IrValue* index, IrValue* guard);
  IrValue* load_vector(const Expression& expression, IrValue* index, IrValue* guard);
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
  // <16 x i1> where all guards hold, or null without guards.
  IrValue* guard_mask(const std::vector<Guard>& guards);
  bool is_uniform(const std::vector<Guard>& guards);
  IrValue* both(IrValue* a, IrValue* b);
  IrValue* address(int32_t argument, DType dtype, IrValue* index);
  bool depends_on_lane(const AffineIndex& index) const;
  void find_lane_dependences();
  IrValue* i64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  llvm::IRBuilder<>& builder_;
  Lanes lanes_;
  const KernelSpec& spec_;
  const LoopNest& nest_;
  IrValue* micro_batch_;
  std::vector<IrValue*> pointers_;  // per argument of the spec
  std::vector<IrValue*> values_;    // per expression
  std::vector<bool> varies_;        // per expression: may differ between lanes
};

}  // namespace sgtc
