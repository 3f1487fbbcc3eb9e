#include "codegen/lanes.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <numeric>
#include <vector>

namespace sgtc {
namespace {

unsigned bits_of(DType dtype) { return static_cast<unsigned>(size_of(dtype)) * 8; }

bool is_narrow_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace

llvm::FixedVectorType* Lanes::vector(llvm::Type* element) const {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(count_));
}

llvm::Type* Lanes::memory_type(DType dtype) const {
  switch (dtype) {
    case DType::kFloat16:
      return builder_.getHalfTy();
    case DType::kFloat32:
      return builder_.getFloatTy();
    case DType::kFloat64:
      return builder_.getDoubleTy();
    default:
      return builder_.getIntNTy(bits_of(dtype));
  }
}

llvm::FixedVectorType* Lanes::memory_vector(DType dtype) const {
  return vector(memory_type(dtype));
}

llvm::FixedVectorType* Lanes::type(DType dtype) const {
  if (dtype == DType::kBool) return vector(builder_.getInt1Ty());
  if (is_narrow_float(dtype)) return vector(builder_.getFloatTy());
  return memory_vector(dtype);
}

IrValue* Lanes::splat(IrValue* scalar) const {
  return builder_.CreateVectorSplat(static_cast<unsigned>(count_), scalar);
}

IrValue* Lanes::numbers() const {
  std::vector<uint64_t> numbers(static_cast<size_t>(count_));
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  return llvm::ConstantDataVector::get(builder_.getContext(), numbers);
}

llvm::Constant* Lanes::mask_of_first(int64_t count) const {
  std::vector<llvm::Constant*> lanes;
  for (int64_t i = 0; i < count_; ++i) lanes.push_back(builder_.getInt1(i < count));
  return llvm::ConstantVector::get(lanes);
}

IrValue* Lanes::constant(DType dtype, double real, int64_t integer) const {
  llvm::Type* element = type(dtype)->getElementType();
  if (is_float(dtype)) return splat(llvm::ConstantFP::get(element, real));
  if (dtype == DType::kBool) return splat(builder_.getInt1(integer != 0));
  return splat(llvm::ConstantInt::get(element, static_cast<uint64_t>(integer), true));
}

IrValue* Lanes::zero(DType dtype) const { return llvm::Constant::getNullValue(type(dtype)); }

IrValue* Lanes::from_memory(IrValue* value, DType dtype) const {
  switch (dtype) {
    case DType::kBool:
      return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
    case DType::kFloat16:
      return builder_.CreateFPExt(value, type(dtype));
    case DType::kBFloat16: {
      IrValue* wide = builder_.CreateZExt(value, vector(builder_.getInt32Ty()));
      return builder_.CreateBitCast(builder_.CreateShl(wide, 16), type(dtype));
    }
    default:
      return value;
  }
}

IrValue* Lanes::to_memory(IrValue* value, DType dtype) const {
  switch (dtype) {
    case DType::kBool:
      return builder_.CreateZExt(value, memory_vector(dtype));
    case DType::kFloat16:
      return builder_.CreateFPTrunc(value, memory_vector(dtype));
    case DType::kBFloat16: {
      IrValue* bits = builder_.CreateBitCast(value, vector(builder_.getInt32Ty()));
      return builder_.CreateTrunc(builder_.CreateLShr(bits, 16), memory_vector(dtype));
    }
    default:
      return value;
  }
}

bool Lanes::has_pairs(DType dtype) const {
  return is_thread() && dtype == DType::kBFloat16 && count_ % 2 == 0;
}

llvm::FixedVectorType* Lanes::pairs() const {
  return llvm::FixedVectorType::get(builder_.getInt32Ty(), static_cast<unsigned>(count_ / 2));
}

IrValue* Lanes::from_pairs(IrValue* words) const {
  IrValue* lanes = llvm::PoisonValue::get(vector(builder_.getInt32Ty()));
  for (uint64_t i = 0; i < static_cast<uint64_t>(count_); i += 2) {
    IrValue* word = builder_.CreateExtractElement(words, i / 2);
    lanes = builder_.CreateInsertElement(lanes, builder_.CreateShl(word, 16), i);
    lanes = builder_.CreateInsertElement(lanes, builder_.CreateAnd(word, 0xffff0000), i + 1);
  }
  return builder_.CreateBitCast(lanes, vector(builder_.getFloatTy()));
}

IrValue* Lanes::to_pairs(IrValue* value) const {
  IrValue* bits = builder_.CreateBitCast(value, vector(builder_.getInt32Ty()));
  IrValue* words = llvm::PoisonValue::get(pairs());
  for (uint64_t i = 0; i < static_cast<uint64_t>(count_); i += 2) {
    IrValue* low = builder_.CreateLShr(builder_.CreateExtractElement(bits, i), 16);
    IrValue* high = builder_.CreateAnd(builder_.CreateExtractElement(bits, i + 1), 0xffff0000);
    words = builder_.CreateInsertElement(words, builder_.CreateOr(low, high), i / 2);
  }
  return words;
}

IrValue* Lanes::round(IrValue* value, DType dtype) const {
  if (dtype == DType::kFloat16) {
    return builder_.CreateFPExt(builder_.CreateFPTrunc(value, memory_vector(dtype)), type(dtype));
  }
  return dtype == DType::kBFloat16 ? round_to_bfloat16(value) : value;
}

// By the instruction of GPUs that rounds two numbers at once.
IrValue* Lanes::round_pairs_to_bfloat16(IrValue* value) const {
  IrValue* words = llvm::PoisonValue::get(pairs());
  for (uint64_t i = 0; i < static_cast<uint64_t>(count_); i += 2) {
    IrValue* pair = builder_.CreateIntrinsic(
        llvm::Intrinsic::nvvm_ff2bf16x2_rn, {},
        {builder_.CreateExtractElement(value, i + 1), builder_.CreateExtractElement(value, i)});
    IrValue* word = builder_.CreateBitCast(pair, builder_.getInt32Ty());
    words = builder_.CreateInsertElement(words, word, i / 2);
  }
  return from_pairs(words);
}

// Half to even on the upper 16 bits; a NaN stays one.
IrValue* Lanes::round_to_bfloat16(IrValue* value) const {
  if (has_pairs(DType::kBFloat16)) return round_pairs_to_bfloat16(value);
  llvm::Type* integers = vector(builder_.getInt32Ty());
  auto number = [&](uint32_t n) { return splat(builder_.getInt32(n)); };
  IrValue* bits = builder_.CreateBitCast(value, integers);
  IrValue* odd = builder_.CreateAnd(builder_.CreateLShr(bits, 16), number(1));
  IrValue* rounded = builder_.CreateAdd(builder_.CreateAdd(bits, number(0x7fff)), odd);
  IrValue* quiet = builder_.CreateOr(bits, number(0x400000));
  IrValue* is_nan = builder_.CreateFCmpUNO(value, value);
  IrValue* kept = builder_.CreateSelect(is_nan, quiet, rounded);
  return builder_.CreateBitCast(builder_.CreateAnd(kept, number(0xffff0000)), value->getType());
}

// f64 to f32 such that rounding the result again to a narrower format rounds only once: inexact
// results get an odd last bit.
IrValue* Lanes::round_to_odd(IrValue* value) const {
  llvm::Type* singles = vector(builder_.getFloatTy());
  llvm::Type* integers = vector(builder_.getInt32Ty());
  IrValue* nearest = builder_.CreateFPTrunc(value, singles);
  IrValue* back = builder_.CreateFPExt(nearest, value->getType());
  IrValue* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  IrValue* back_magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  IrValue* too_large = builder_.CreateFCmpOGT(back_magnitude, magnitude);
  IrValue* inexact = builder_.CreateFCmpONE(back, value);
  IrValue* bits = builder_.CreateBitCast(nearest, integers);
  bits = builder_.CreateSub(bits, builder_.CreateZExt(too_large, integers));
  bits = builder_.CreateOr(bits, builder_.CreateZExt(inexact, integers));
  return builder_.CreateBitCast(bits, singles);
}

IrValue* Lanes::convert(IrValue* value, DType from, DType to) const {
  if (from == to) return value;
  if (to == DType::kBool) return to_bool(value, from);
  return is_float(to) ? to_float(value, from, to) : to_integer(value, from, to);
}

IrValue* Lanes::to_bool(IrValue* value, DType from) const {
  IrValue* none = llvm::Constant::getNullValue(value->getType());
  return is_float(from) ? builder_.CreateFCmpUNE(value, none) : builder_.CreateICmpNE(value, none);
}

IrValue* Lanes::to_integer(IrValue* value, DType from, DType to) const {
  if (from == DType::kBool) return builder_.CreateZExt(value, type(to));
  if (!is_float(from)) return builder_.CreateIntCast(value, type(to), !is_unsigned(from));
  auto saturate = is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
  return builder_.CreateIntrinsic(saturate, {type(to), value->getType()}, {value});
}

IrValue* Lanes::to_float(IrValue* value, DType from, DType to) const {
  llvm::Type* doubles = vector(builder_.getDoubleTy());
  llvm::Type* singles = vector(builder_.getFloatTy());
  if (!is_float(from)) {
    bool is_signed = from != DType::kBool && !is_unsigned(from);
    bool through_double = is_narrow_float(to) && size_of(from) > 2;
    llvm::Type* wide = to == DType::kFloat64 || through_double ? doubles : singles;
    value = is_signed ? builder_.CreateSIToFP(value, wide) : builder_.CreateUIToFP(value, wide);
    from = wide == doubles ? DType::kFloat64 : DType::kFloat32;
  }
  if (to == DType::kFloat64) return builder_.CreateFPCast(value, doubles);
  if (from == DType::kFloat64) {
    value = is_narrow_float(to) ? round_to_odd(value) : builder_.CreateFPTrunc(value, singles);
  }
  return round(value, to);
}

}  // namespace sgtc
