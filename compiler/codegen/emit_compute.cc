#include "codegen/emit_compute.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <limits>
#include <string>

#include "codegen/control_flow.h"
#include "codegen/lanes.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Emits one operator. `dtype_` is the operands' common dtype.
class Compute {
 public:
  Compute(llvm::IRBuilder<>& builder, DType dtype, int64_t lanes)
      : builder_(builder), lanes_(builder, lanes), dtype_(dtype) {}

  IrValue* unary(const Expression& expression, IrValue* x);
  IrValue* binary(Op op, IrValue* a, IrValue* b, DType exponent_dtype);
  IrValue* maximum(IrValue* a, IrValue* b) { return pick(a, b, true); }
  IrValue* minimum(IrValue* a, IrValue* b) { return pick(a, b, false); }
  IrValue* approximation(Op op, const std::vector<IrValue*>& operands) {
    return math("approximate_" + std::string(name_of(op)), operands);
  }

 private:
  IrValue* unary_real(Op op, IrValue* x);
  IrValue* unary_integer(Op op, IrValue* x);
  IrValue* is_infinite(IrValue* x, int64_t flags);
  IrValue* sign(IrValue* x);
  IrValue* compare(Op op, IrValue* a, IrValue* b);
  IrValue* binary_real(Op op, IrValue* a, IrValue* b);
  IrValue* binary_integer(Op op, IrValue* a, IrValue* b);
  IrValue* pick(IrValue* a, IrValue* b, bool larger);
  IrValue* divide(IrValue* a, IrValue* b, bool remainder);
  IrValue* floored_remainder(IrValue* a, IrValue* b);
  IrValue* floored_mod(IrValue* a, IrValue* b);
  IrValue* shift(Op op, IrValue* a, IrValue* amount);
  IrValue* power(IrValue* a, IrValue* b, DType exponent_dtype);
  IrValue* integer_power(IrValue* base, IrValue* exponent);
  IrValue* math(const std::string& name, std::vector<IrValue*> operands);

  IrValue* intrinsic(llvm::Intrinsic::ID id, IrValue* x) {
    return builder_.CreateUnaryIntrinsic(id, x);
  }
  IrValue* number(double real) { return lanes_.constant(dtype_, real, static_cast<int64_t>(real)); }
  bool is_signed() const { return !is_unsigned(dtype_) && dtype_ != DType::kBool; }

  llvm::IRBuilder<>& builder_;
  Lanes lanes_;
  DType dtype_;
};

// 16 floats at once; doubles and shorter vectors one after the other.
IrValue* Compute::math(const std::string& name, std::vector<IrValue*> operands) {
  llvm::Module& module = *builder_.GetInsertBlock()->getModule();
  bool is_double = dtype_ == DType::kFloat64;
  bool is_vector = !is_double && lanes_.count() == kLanes;
  llvm::Type* type = lanes_.type(dtype_);
  if (!is_vector) type = type->getScalarType();
  std::vector<llvm::Type*> parameters(operands.size(), type);
  const char* suffix = is_double ? "_f64" : is_vector ? "_v16f32" : "_f32";
  llvm::FunctionCallee function = module.getOrInsertFunction(
      "sgtc_" + name + suffix, llvm::FunctionType::get(type, parameters, false));
  if (is_vector) return builder_.CreateCall(function, operands);
  return emit_lane_loop(builder_, type, lanes_.count(), [&](IrValue* lane) {
    std::vector<IrValue*> elements;
    for (IrValue* operand : operands) {
      elements.push_back(builder_.CreateExtractElement(operand, lane));
    }
    return builder_.CreateCall(function, elements);
  });
}

IrValue* Compute::unary(const Expression& expression, IrValue* x) {
  switch (expression.op) {
    case Op::kIsNan:
      return builder_.CreateFCmpUNO(x, x);
    case Op::kIsInf:
      return is_infinite(x, expression.integer);
    case Op::kLogicalNot:
      return builder_.CreateNot(x);
    default:
      break;
  }
  return is_float(dtype_) ? unary_real(expression.op, x) : unary_integer(expression.op, x);
}

IrValue* Compute::is_infinite(IrValue* x, int64_t flags) {
  double infinity = std::numeric_limits<double>::infinity();
  IrValue* positive = builder_.CreateFCmpOEQ(x, number(infinity));
  IrValue* negative = builder_.CreateFCmpOEQ(x, number(-infinity));
  if (flags == 3) return builder_.CreateOr(positive, negative);
  if (flags == 0) return lanes_.zero(DType::kBool);
  return flags == 1 ? positive : negative;
}

IrValue* Compute::unary_real(Op op, IrValue* x) {
  switch (op) {
    case Op::kNeg:
      return builder_.CreateFNeg(x);
    case Op::kAbs:
      return intrinsic(llvm::Intrinsic::fabs, x);
    case Op::kSign:
      return sign(x);
    case Op::kSqrt:
      return intrinsic(llvm::Intrinsic::sqrt, x);
    case Op::kRsqrt:
      return builder_.CreateFDiv(number(1), intrinsic(llvm::Intrinsic::sqrt, x));
    case Op::kReciprocal:
      return builder_.CreateFDiv(number(1), x);
    case Op::kFloor:
      return intrinsic(llvm::Intrinsic::floor, x);
    case Op::kCeil:
      return intrinsic(llvm::Intrinsic::ceil, x);
    case Op::kRound:
      return intrinsic(llvm::Intrinsic::roundeven, x);
    default:
      return math(std::string(name_of(op)), {x});
  }
}

IrValue* Compute::sign(IrValue* x) {
  IrValue* negative = builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(0)), number(-1), x);
  return builder_.CreateSelect(builder_.CreateFCmpOGT(x, number(0)), number(1), negative);
}

IrValue* Compute::unary_integer(Op op, IrValue* x) {
  switch (op) {
    case Op::kNeg:
      return builder_.CreateNeg(x);
    case Op::kBitNot:
      return builder_.CreateNot(x);
    case Op::kAbs:
      return is_signed()
                 ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder_.getFalse())
                 : x;
    case Op::kSign: {
      IrValue* positive = builder_.CreateZExt(
          is_signed() ? builder_.CreateICmpSGT(x, number(0)) : builder_.CreateICmpNE(x, number(0)),
          x->getType());
      if (!is_signed()) return positive;
      IrValue* negative = builder_.CreateZExt(builder_.CreateICmpSLT(x, number(0)), x->getType());
      return builder_.CreateSub(positive, negative);
    }
    default:
      break;
  }
  internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not unary on integers");
}

IrValue* Compute::binary(Op op, IrValue* a, IrValue* b, DType exponent_dtype) {
  if (op >= Op::kEqual && op <= Op::kGreaterEqual) return compare(op, a, b);
  if (op == Op::kPow) return power(a, b, exponent_dtype);
  return is_float(dtype_) ? binary_real(op, a, b) : binary_integer(op, a, b);
}

IrValue* Compute::compare(Op op, IrValue* a, IrValue* b) {
  using Predicate = llvm::CmpInst::Predicate;
  struct Row {
    Predicate real, with_sign, without_sign;
  };
  auto row = [&]() -> Row {
    switch (op) {
      case Op::kEqual:
        return {Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ};
      case Op::kNotEqual:
        return {Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE};
      case Op::kLess:
        return {Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT};
      case Op::kLessEqual:
        return {Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE};
      case Op::kGreater:
        return {Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT};
      default:
        return {Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE};
    }
  }();
  if (is_float(dtype_)) return builder_.CreateFCmp(row.real, a, b);
  return builder_.CreateICmp(is_signed() ? row.with_sign : row.without_sign, a, b);
}

IrValue* Compute::binary_real(Op op, IrValue* a, IrValue* b) {
  switch (op) {
    case Op::kAdd:
      return builder_.CreateFAdd(a, b);
    case Op::kSub:
      return builder_.CreateFSub(a, b);
    case Op::kMul:
      return builder_.CreateFMul(a, b);
    case Op::kDiv:
      return builder_.CreateFDiv(a, b);
    case Op::kMax:
      return maximum(a, b);
    case Op::kMin:
      return minimum(a, b);
    case Op::kFmod:
      return math("fmod", {a, b});
    case Op::kMod:
      return floored_mod(a, b);
    default:
      break;
  }
  internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not binary on reals");
}

// The first operand when both are equal (GPUs order zeros by their sign); NaN if either is.
IrValue* Compute::pick(IrValue* a, IrValue* b, bool larger) {
  if (lanes_.is_thread() && is_float(dtype_) && dtype_ != DType::kFloat64) {
    return builder_.CreateBinaryIntrinsic(
        larger ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  }
  Op op = larger ? Op::kGreaterEqual : Op::kLessEqual;
  IrValue* first = compare(op, a, b);
  if (is_float(dtype_)) first = builder_.CreateOr(first, builder_.CreateFCmpUNO(a, a));
  return builder_.CreateSelect(first, a, b);
}

IrValue* Compute::floored_mod(IrValue* a, IrValue* b) {
  IrValue* rest = math("fmod", {a, b});
  IrValue* rest_negative = builder_.CreateFCmpOLT(rest, number(0));
  IrValue* divisor_negative = builder_.CreateFCmpOLT(b, number(0));
  IrValue* same_sign = builder_.CreateNot(builder_.CreateXor(rest_negative, divisor_negative));
  IrValue* moved = builder_.CreateSelect(same_sign, rest, builder_.CreateFAdd(rest, b));
  IrValue* zero = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, b);
  return builder_.CreateSelect(builder_.CreateFCmpOEQ(rest, number(0)), zero, moved);
}

IrValue* Compute::binary_integer(Op op, IrValue* a, IrValue* b) {
  switch (op) {
    case Op::kAdd:
      return builder_.CreateAdd(a, b);
    case Op::kSub:
      return builder_.CreateSub(a, b);
    case Op::kMul:
      return builder_.CreateMul(a, b);
    case Op::kDiv:
      return divide(a, b, false);
    case Op::kFmod:
      return divide(a, b, true);
    case Op::kMod:
      return floored_remainder(a, b);
    case Op::kMax:
      return maximum(a, b);
    case Op::kMin:
      return minimum(a, b);
    case Op::kLogicalAnd:
    case Op::kBitAnd:
      return builder_.CreateAnd(a, b);
    case Op::kLogicalOr:
    case Op::kBitOr:
      return builder_.CreateOr(a, b);
    case Op::kLogicalXor:
    case Op::kBitXor:
      return builder_.CreateXor(a, b);
    case Op::kShiftLeft:
    case Op::kShiftRight:
      return shift(op, a, b);
    default:
      break;
  }
  internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not binary on integers");
}

// The divisors 0 and -1 would trap for some dividends: x / 0 = 0, x / -1 = -x.
IrValue* Compute::divide(IrValue* a, IrValue* b, bool remainder) {
  IrValue* by_zero = builder_.CreateICmpEQ(b, number(0));
  IrValue* special = by_zero;
  IrValue* minus_one = nullptr;
  if (is_signed()) {
    minus_one = builder_.CreateICmpEQ(b, number(-1));
    special = builder_.CreateOr(special, minus_one);
  }
  IrValue* safe = builder_.CreateSelect(special, number(1), b);
  if (remainder) {
    return is_signed() ? builder_.CreateSRem(a, safe) : builder_.CreateURem(a, safe);
  }
  IrValue* quotient = is_signed() ? builder_.CreateSDiv(a, safe) : builder_.CreateUDiv(a, safe);
  if (minus_one != nullptr) {
    quotient = builder_.CreateSelect(minus_one, builder_.CreateNeg(a), quotient);
  }
  return builder_.CreateSelect(by_zero, number(0), quotient);
}

IrValue* Compute::floored_remainder(IrValue* a, IrValue* b) {
  IrValue* rest = divide(a, b, true);
  if (!is_signed()) return rest;
  IrValue* signs_differ = builder_.CreateICmpSLT(builder_.CreateXor(rest, b), number(0));
  IrValue* move = builder_.CreateAnd(signs_differ, builder_.CreateICmpNE(rest, number(0)));
  return builder_.CreateSelect(move, builder_.CreateAdd(rest, b), rest);
}

IrValue* Compute::shift(Op op, IrValue* a, IrValue* amount) {
  IrValue* last = number(static_cast<double>(size_of(dtype_) * 8 - 1));
  IrValue* in_range = builder_.CreateICmpULE(amount, last);
  if (op == Op::kShiftLeft) {
    IrValue* safe = builder_.CreateSelect(in_range, amount, number(0));
    return builder_.CreateSelect(in_range, builder_.CreateShl(a, safe), number(0));
  }
  IrValue* safe = builder_.CreateSelect(in_range, amount, last);
  if (is_signed()) return builder_.CreateAShr(a, safe);
  return builder_.CreateSelect(in_range, builder_.CreateLShr(a, safe), number(0));
}

IrValue* Compute::power(IrValue* a, IrValue* b, DType exponent_dtype) {
  if (is_float(dtype_)) {
    DType wide = dtype_ == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    return math("pow", {a, lanes_.convert(b, exponent_dtype, wide)});
  }
  if (!is_float(exponent_dtype)) {
    return integer_power(a, lanes_.convert(b, exponent_dtype, DType::kInt64));
  }
  Compute real(builder_, DType::kFloat64, lanes_.count());
  IrValue* base = lanes_.convert(a, dtype_, DType::kFloat64);
  IrValue* exponent = lanes_.convert(b, exponent_dtype, DType::kFloat64);
  return lanes_.convert(real.math("pow", {base, exponent}), DType::kFloat64, dtype_);
}

// By squaring. A negative exponent leaves 1 and -1 and makes 0 of all others.
IrValue* Compute::integer_power(IrValue* base, IrValue* exponent) {
  llvm::AllocaInst* result = emit_variable(builder_, base->getType());
  llvm::AllocaInst* square = emit_variable(builder_, base->getType());
  llvm::AllocaInst* left = emit_variable(builder_, exponent->getType());
  IrValue* zero = llvm::Constant::getNullValue(exponent->getType());
  IrValue* negative = builder_.CreateICmpSLT(exponent, zero);
  IrValue* is_unit = builder_.CreateICmpEQ(base, number(1));
  if (is_signed()) is_unit = builder_.CreateOr(is_unit, builder_.CreateICmpEQ(base, number(-1)));
  builder_.CreateStore(number(1), result);
  builder_.CreateStore(base, square);
  builder_.CreateStore(exponent, left);
  emit_for(builder_, builder_.getInt64(0), builder_.getInt64(64), 1, [&](IrValue*) {
    IrValue* remaining = builder_.CreateLoad(exponent->getType(), left);
    IrValue* factor = builder_.CreateLoad(base->getType(), square);
    IrValue* product = builder_.CreateLoad(base->getType(), result);
    IrValue* bit = builder_.CreateTrunc(remaining, lanes_.type(DType::kBool));
    builder_.CreateStore(builder_.CreateSelect(bit, builder_.CreateMul(product, factor), product),
                         result);
    builder_.CreateStore(builder_.CreateMul(factor, factor), square);
    builder_.CreateStore(builder_.CreateLShr(remaining, 1), left);
  });
  IrValue* product = builder_.CreateLoad(base->getType(), result);
  IrValue* odd = builder_.CreateTrunc(exponent, lanes_.type(DType::kBool));
  IrValue* unit = builder_.CreateSelect(odd, base, number(1));
  IrValue* inverse = builder_.CreateSelect(is_unit, unit, number(0));
  return builder_.CreateSelect(negative, inverse, product);
}

int64_t lane_count(IrValue* value) {
  return llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements();
}

}  // namespace

IrValue* emit_lane_loop(llvm::IRBuilder<>& builder, llvm::Type* element_type, int64_t lanes,
                        const std::function<IrValue*(IrValue*)>& element) {
  llvm::Type* type = llvm::FixedVectorType::get(element_type, static_cast<unsigned>(lanes));
  if (lanes < kLanes) {
    IrValue* collected = llvm::PoisonValue::get(type);
    for (uint64_t lane = 0; lane < static_cast<uint64_t>(lanes); ++lane) {
      collected = builder.CreateInsertElement(collected, element(builder.getInt64(lane)), lane);
    }
    return collected;
  }
  llvm::AllocaInst* results = emit_variable(builder, type);
  builder.CreateStore(llvm::Constant::getNullValue(type), results);
  emit_for(builder, builder.getInt64(0), builder.getInt64(kLanes), 1, [&](IrValue* lane) {
    builder.CreateStore(element(lane), builder.CreateGEP(element_type, results, lane));
  });
  return builder.CreateLoad(type, results);
}

IrValue* emit_compute(llvm::IRBuilder<>& builder, const Expression& expression,
                      const std::vector<IrValue*>& operands, const std::vector<DType>& dtypes) {
  int64_t count = lane_count(operands[0]);
  Lanes lanes(builder, count);
  if (expression.op == Op::kCast) return lanes.convert(operands[0], dtypes[0], expression.dtype);
  if (expression.op == Op::kWhere) {
    return builder.CreateSelect(operands[0], operands[1], operands[2]);
  }
  Compute compute(builder, dtypes[0], count);
  const bool is_relaxed = expression.op != Op::kIsInf && expression.integer != 0;
  if (is_relaxed && lanes.is_thread()) {
    return lanes.round(compute.approximation(expression.op, operands), expression.dtype);
  }
  IrValue* result = operands.size() == 1
                        ? compute.unary(expression, operands[0])
                        : compute.binary(expression.op, operands[0], operands[1], dtypes[1]);
  return lanes.round(result, expression.dtype);
}

IrValue* emit_combine(llvm::IRBuilder<>& builder, Op reduction, DType dtype, IrValue* a,
                      IrValue* b) {
  Compute compute(builder, dtype, lane_count(a));
  switch (reduction) {
    case Op::kReduceSum:
      return compute.binary(Op::kAdd, a, b, dtype);
    case Op::kReduceProd:
      return compute.binary(Op::kMul, a, b, dtype);
    case Op::kReduceMax:
      return compute.maximum(a, b);
    default:
      return compute.minimum(a, b);
  }
}

IrValue* emit_identity(llvm::IRBuilder<>& builder, Op reduction, DType dtype, int64_t count) {
  Lanes lanes(builder, count);
  if (reduction == Op::kReduceSum) return lanes.zero(dtype);
  if (reduction == Op::kReduceProd) return lanes.constant(dtype, 1, 1);
  bool largest = reduction == Op::kReduceMin;
  double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return lanes.constant(dtype, largest ? infinity : -infinity, 0);
  unsigned bits = lanes.type(dtype)->getScalarSizeInBits();
  bool is_signed = !is_unsigned(dtype) && dtype != DType::kBool;
  llvm::APInt value =
      largest ? (is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits))
      : is_signed ? llvm::APInt::getSignedMinValue(bits)
                  : llvm::APInt::getMinValue(bits);
  return lanes.splat(llvm::ConstantInt::get(builder.getContext(), value));
}

}  // namespace sgtc
