// LLVM IR of elementwise operators on the lanes of a vector.
//
// The math library has functions of 16 floats for CPUs and of one float for GPUs: vectors of kLanes
// call the first, shorter ones call the second for each lane.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

#include "codegen/control_flow.h"
#include "passes/loop_nest.h"

namespace sgtc {

/// One elementwise operation; operands as Lanes holds them in registers, and so the result, of as
/// many lanes, rounded to the expression's dtype. No fast-math flag is set. Transcendental
/// functions, and on GPUs what may be approximate, are calls of the math library in kernels/math,
/// which are inlined later.
IrValue* emit_compute(llvm::IRBuilder<>& builder, const Expression& expression,
                      const std::vector<IrValue*>& operands, const std::vector<DType>& dtypes);

/// a op b for the accumulators of a reduction: add, mul, max or min with NaN winning.
IrValue* emit_combine(llvm::IRBuilder<>& builder, Op reduction, DType dtype, IrValue* a,
                      IrValue* b);

/// The accumulator's start in registers.
IrValue* emit_identity(llvm::IRBuilder<>& builder, Op reduction, DType dtype,
                       int64_t lanes = kLanes);

/// Evaluates `element(lane)` for each of `lanes` lanes and collects the results: for functions that
/// exist for one element only. A loop for kLanes, straight code for fewer: a GPU's thread cannot
/// index its registers.
IrValue* emit_lane_loop(llvm::IRBuilder<>& builder, llvm::Type* element_type, int64_t lanes,
                        const std::function<IrValue*(IrValue* lane)>& element);

}  // namespace sgtc
