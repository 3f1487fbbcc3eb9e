// Values of some lanes: their types in registers and in memory, and conversions between dtypes.
//
// A CPU works with 16 lanes, a GPU's thread with 1 to 8. In registers, of n lanes: bool is <n x
// i1>; integers have their own width; f16, bf16 and f32 are <n x float>, where a value of a narrow
// dtype is always one that the dtype can represent; f64 is <n x double>. In memory a bool is a
// byte.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/control_flow.h"
#include "passes/loop_nest.h"

namespace sgtc {

class Lanes {
 public:
  explicit Lanes(llvm::IRBuilder<>& builder, int64_t count = kLanes)
      : builder_(builder), count_(count) {}

  int64_t count() const { return count_; }
  /// The lanes are those of a GPU's thread.
  bool is_thread() const { return count_ < kLanes; }

  llvm::Type* memory_type(DType dtype) const;
  llvm::FixedVectorType* memory_vector(DType dtype) const;
  llvm::FixedVectorType* type(DType dtype) const;

  IrValue* splat(IrValue* scalar) const;
  /// 0, 1, 2 … as i64.
  IrValue* numbers() const;
  IrValue* constant(DType dtype, double real, int64_t integer) const;
  IrValue* zero(DType dtype) const;
  /// The first `count` lanes.
  llvm::Constant* mask_of_first(int64_t count) const;

  /// Between memory and registers.
  IrValue* from_memory(IrValue* value, DType dtype) const;
  IrValue* to_memory(IrValue* value, DType dtype) const;
  /// Whether a GPU's thread reads and writes whole vectors as pairs of elements in words of 32
  /// bits: its registers have that size.
  bool has_pairs(DType dtype) const;
  llvm::FixedVectorType* pairs() const;
  IrValue* from_pairs(IrValue* words) const;
  IrValue* to_pairs(IrValue* value) const;

  /// A float result rounded to what `dtype` can represent; others are returned as they are.
  IrValue* round(IrValue* value, DType dtype) const;
  /// As the operator cast: saturating to integers, NaN to 0, anything but zero to true.
  IrValue* convert(IrValue* value, DType from, DType to) const;

 private:
  IrValue* to_bool(IrValue* value, DType from) const;
  IrValue* to_integer(IrValue* value, DType from, DType to) const;
  IrValue* to_float(IrValue* value, DType from, DType to) const;
  IrValue* round_to_bfloat16(IrValue* value) const;
  IrValue* round_pairs_to_bfloat16(IrValue* value) const;
  IrValue* round_to_odd(IrValue* value) const;
  llvm::FixedVectorType* vector(llvm::Type* element) const;

  llvm::IRBuilder<>& builder_;
  int64_t count_;
};

}  // namespace sgtc
