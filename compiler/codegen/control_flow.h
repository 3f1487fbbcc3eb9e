// Loops and branches of generated functions.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>

namespace sgtc {

/// A value of generated code; `Value` is a tensor of the Graph.
using IrValue = llvm::Value;

/// for (i = begin; i < end; i += step) body(i), all i64. Nothing is emitted if the bounds are
/// constants and the range is empty; a range of one step becomes straight code.
void emit_for(llvm::IRBuilder<>& builder, IrValue* begin, IrValue* end, int64_t step,
              const std::function<void(IrValue*)>& body);

/// The same with a step that is known at run time; the comparison is made for empty ranges too.
void emit_for(llvm::IRBuilder<>& builder, IrValue* begin, IrValue* end, IrValue* step,
              const std::function<void(IrValue*)>& body);

/// if (condition) then().
void emit_if(llvm::IRBuilder<>& builder, IrValue* condition, const std::function<void()>& then);

/// A variable in the function's entry block.
llvm::AllocaInst* emit_variable(llvm::IRBuilder<>& builder, llvm::Type* type);

}  // namespace sgtc
