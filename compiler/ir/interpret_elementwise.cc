// Elementwise operators of the interpreter.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

double sign(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

double softplus(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); }

// NaN if either is; the first operand when they are equal.
double maximum(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

double minimum(double a, double b) { return a <= b || std::isnan(a) ? a : b; }

// The sign of the divisor.
double floored_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(remainder, b);
  return (remainder < 0) == (b < 0) ? remainder : remainder + b;
}

double unary_real(Op op, double x) {
  switch (op) {
    case Op::kNeg:
      return -x;
    case Op::kAbs:
      return std::abs(x);
    case Op::kSign:
      return sign(x);
    case Op::kExp:
      return std::exp(x);
    case Op::kLog:
      return std::log(x);
    case Op::kSqrt:
      return std::sqrt(x);
    case Op::kRsqrt:
      return 1 / std::sqrt(x);
    case Op::kReciprocal:
      return 1 / x;
    case Op::kSin:
      return std::sin(x);
    case Op::kCos:
      return std::cos(x);
    case Op::kTan:
      return std::tan(x);
    case Op::kAsin:
      return std::asin(x);
    case Op::kAcos:
      return std::acos(x);
    case Op::kAtan:
      return std::atan(x);
    case Op::kSinh:
      return std::sinh(x);
    case Op::kCosh:
      return std::cosh(x);
    case Op::kTanh:
      return std::tanh(x);
    case Op::kAsinh:
      return std::asinh(x);
    case Op::kAcosh:
      return std::acosh(x);
    case Op::kAtanh:
      return std::atanh(x);
    case Op::kErf:
      return std::erf(x);
    case Op::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Op::kSoftplus:
      return softplus(x);
    case Op::kFloor:
      return std::floor(x);
    case Op::kCeil:
      return std::ceil(x);
    case Op::kRound:
      return std::nearbyint(x);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not unary on reals");
  }
}

double binary_real(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kPow:
      return std::pow(a, b);
    case Op::kMod:
      return floored_mod(a, b);
    case Op::kFmod:
      return std::fmod(a, b);
    case Op::kMax:
      return maximum(a, b);
    case Op::kMin:
      return minimum(a, b);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not binary on reals");
  }
}

// T is int64_t or uint64_t. Arithmetic wraps; the caller wraps the result to the dtype.
template <typename T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - uint64_t(a));
  return a / b;
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return a % b;
}

template <typename T>
T floored_remainder(T a, T b) {
  const T rest = remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
T power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 == 0 ? 1 : base;
    return 0;
  }
  uint64_t result = 1;
  uint64_t square = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
    if ((left & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// `bits` is the width of the dtype; other amounts give 0, or -1 for a negative number shifted
// right.
template <typename T>
T shift(Op op, T a, T amount, int64_t bits) {
  const bool out = static_cast<uint64_t>(amount) >= static_cast<uint64_t>(bits);
  if (op == Op::kShiftRight) return out ? static_cast<T>(a < 0 ? -1 : 0) : a >> amount;
  return out ? 0 : static_cast<T>(static_cast<uint64_t>(a) << amount);
}

template <typename T>
T binary_integer(Op op, T a, T b, int64_t bits) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return static_cast<T>(x + y);
    case Op::kSub:
      return static_cast<T>(x - y);
    case Op::kMul:
      return static_cast<T>(x * y);
    case Op::kDiv:
      return divide(a, b);
    case Op::kPow:
      return power(a, b);
    case Op::kMod:
      return floored_remainder(a, b);
    case Op::kFmod:
      return remainder(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kMin:
      return std::min(a, b);
    case Op::kBitAnd:
    case Op::kLogicalAnd:
      return a & b;
    case Op::kBitOr:
    case Op::kLogicalOr:
      return a | b;
    case Op::kBitXor:
    case Op::kLogicalXor:
      return a ^ b;
    case Op::kShiftLeft:
    case Op::kShiftRight:
      return shift(op, a, b, bits);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not binary on integers");
  }
}

int64_t unary_integer(Op op, int64_t x, bool is_signed) {
  switch (op) {
    case Op::kNeg:
      return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    case Op::kAbs:
      return is_signed && x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
    case Op::kSign:
      return is_signed ? (x > 0) - (x < 0) : x != 0;
    case Op::kBitNot:
      return ~x;
    case Op::kLogicalNot:
      return x == 0 ? 1 : 0;
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " is not unary on integers");
  }
}

template <typename T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::kEqual:
      return a == b;
    case Op::kNotEqual:
      return a != b;
    case Op::kLess:
      return a < b;
    case Op::kLessEqual:
      return a <= b;
    case Op::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

bool is_comparison(Op op) { return op >= Op::kEqual && op <= Op::kGreaterEqual; }

// Calls visit(i, positions) for each element of the result with the operands' positions.
template <typename Visit>
void for_each_element(const Call& call, Visit visit) {
  const Shape& shape = call.result().type.shape;
  if (element_count(shape) == 0) return;
  const size_t count = call.operands.size();
  std::vector<size_t> positions(count);
  std::vector<size_t> steps;  // along a row
  for (size_t k = 0; k < count; ++k) {
    steps.push_back(call.shape(k).empty() || call.shape(k).back() == 1 ? 0 : 1);
  }
  const int64_t row = shape.empty() ? 1 : shape.back();
  const Shape rows(shape.begin(), shape.end() - (shape.empty() ? 0 : 1));
  size_t i = 0;
  for_each_index(rows, [&](const Shape& index) {
    Shape first = index;
    first.resize(shape.size(), 0);
    for (size_t k = 0; k < count; ++k) {
      positions[k] = static_cast<size_t>(position_in(call.shape(k), first));
    }
    for (int64_t j = 0; j < row; ++j) {
      visit(i++, positions);
      for (size_t k = 0; k < count; ++k) positions[k] += steps[k];
    }
  });
}

void cast(const Call& call) {
  const Tensor& from = call.operand(0);
  Tensor& to = call.result();
  for (int64_t i = 0; i < from.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    const DType dtype = to.type.dtype;
    if (to.is_real()) {
      to.reals[at] = call.rounded(from.at(i));
    } else if (!from.is_real()) {
      to.integers[at] = wrap_to(dtype, from.integers[at]);
    } else if (dtype == DType::kBool) {
      to.integers[at] = from.reals[at] != 0 ? 1 : 0;  // NaN differs from 0
    } else {
      to.integers[at] = saturate_to(dtype, from.reals[at]);
    }
  }
}

void unary(const Call& call) {
  const Tensor& x = call.operand(0);
  Tensor& y = call.result();
  const DType dtype = x.type.dtype;
  for (size_t i = 0; i < x.reals.size(); ++i) {
    y.reals[i] = call.rounded(unary_real(call.op, x.reals[i]));
  }
  for (size_t i = 0; i < x.integers.size(); ++i) {
    y.integers[i] = wrap_to(dtype, unary_integer(call.op, x.integers[i], !is_unsigned(dtype)));
  }
}

void test(const Call& call) {
  const bool positive = call.attributes.integer_or("positive", 1) != 0;
  const bool negative = call.attributes.integer_or("negative", 1) != 0;
  const std::vector<double>& x = call.operand(0).reals;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool holds = call.op == Op::kIsNan ? std::isnan(x[i])
                                             : std::isinf(x[i]) && (x[i] > 0 ? positive : negative);
    call.result().integers[i] = holds ? 1 : 0;
  }
}

bool compare_elements(const Call& call, size_t a, size_t b) {
  const Tensor& x = call.operand(0);
  const Tensor& y = call.operand(1);
  if (x.is_real()) return compare(call.op, x.reals[a], y.reals[b]);
  if (x.type.dtype != DType::kUInt64) return compare(call.op, x.integers[a], y.integers[b]);
  return compare(call.op, static_cast<uint64_t>(x.integers[a]),
                 static_cast<uint64_t>(y.integers[b]));
}

int64_t combine_integers(const Call& call, size_t a, size_t b) {
  const DType dtype = call.operand(0).type.dtype;
  const int64_t x = call.operand(0).integers[a];
  const int64_t y = call.operand(1).integers[b];
  const int64_t bits = 8 * size_of(dtype);
  if (!is_unsigned(dtype)) return wrap_to(dtype, binary_integer<int64_t>(call.op, x, y, bits));
  const auto result =
      binary_integer<uint64_t>(call.op, static_cast<uint64_t>(x), static_cast<uint64_t>(y), bits);
  return wrap_to(dtype, static_cast<int64_t>(result));
}

void binary(const Call& call) {
  const Tensor& x = call.operand(0);
  const Tensor& y = call.operand(1);
  Tensor& z = call.result();
  for_each_element(call, [&](size_t i, const std::vector<size_t>& at) {
    const auto a = static_cast<int64_t>(at[0]);
    const auto b = static_cast<int64_t>(at[1]);
    if (is_comparison(call.op)) {
      z.integers[i] = compare_elements(call, at[0], at[1]) ? 1 : 0;
    } else if (z.is_real()) {
      z.reals[i] = call.rounded(binary_real(call.op, x.at(a), y.at(b)));
    } else if (y.is_real()) {  // an integer to a real power
      z.integers[i] = saturate_to(z.type.dtype, std::pow(x.at(a), y.at(b)));
    } else {
      z.integers[i] = combine_integers(call, at[0], at[1]);
    }
  });
}

void where(const Call& call) {
  for_each_element(call, [&](size_t i, const std::vector<size_t>& at) {
    const size_t taken = call.operand(0).integers[at[0]] != 0 ? 1 : 2;
    call.result().copy_element(static_cast<int64_t>(i), call.operand(taken),
                               static_cast<int64_t>(at[taken]));
  });
}

}  // namespace

void elementwise(const Call& call) {
  switch (call.op) {
    case Op::kCast:
      return cast(call);
    case Op::kIsNan:
    case Op::kIsInf:
      return test(call);
    case Op::kWhere:
      return where(call);
    default:
      return call.operands.size() == 1 ? unary(call) : binary(call);
  }
}

}  // namespace sgtc::interpret
