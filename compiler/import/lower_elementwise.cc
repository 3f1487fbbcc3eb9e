// Elementwise arithmetic, comparison, logic and casts.
#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

template <Op op>
ValueIds unary(Lowering& node) {
  return {node.add(op, {node.input(0)})};
}

template <Op op>
ValueIds binary(Lowering& node) {
  return {node.add(op, {node.input(0), node.input(1)})};
}

template <Op op>
ValueIds variadic(Lowering& node) {
  const ValueIds operands = node.inputs();
  if (operands.empty()) throw Error("expected at least one input, found none");
  ValueId result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) result = node.add(op, {result, operands[i]});
  return {result};
}

ValueIds lower_mean(Lowering& node) {
  const ValueId sum = variadic<Op::kAdd>(node).front();
  return {node.div(sum, node.scalar(node.dtype(sum), node.input_count()))};
}

ValueIds lower_where(Lowering& node) {
  return {node.where(node.input(0), node.input(1), node.input(2))};
}

ValueIds lower_mod(Lowering& node) {
  const bool truncated = node.integer("fmod", 0) != 0;
  return {node.add(truncated ? Op::kFmod : Op::kMod, {node.input(0), node.input(1)})};
}

ValueIds lower_bit_shift(Lowering& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    throw Error("attribute \"direction\": expected LEFT or RIGHT, found \"" + direction + "\"");
  }
  const Op op = direction == "LEFT" ? Op::kShiftLeft : Op::kShiftRight;
  return {node.add(op, {node.input(0), node.input(1)})};
}

ValueIds lower_is_inf(Lowering& node) {
  return {node.add(Op::kIsInf, {node.input(0)},
                   {{"positive", node.integer("detect_positive", 1)},
                    {"negative", node.integer("detect_negative", 1)}})};
}

ValueIds lower_cast(Lowering& node) {
  const int64_t to = node.required_integer("to");
  const std::optional<DType> dtype = dtype_from_onnx(static_cast<int32_t>(to));
  if (!dtype) {
    throw Error("a cast to " + onnx_dtype_name(static_cast<int32_t>(to)) + " is not supported");
  }
  return {node.cast(node.input(0), *dtype)};
}

ValueIds lower_cast_like(Lowering& node) {
  return {node.cast(node.input(0), node.input_type(1).dtype)};
}

const std::vector<Rule> kRules = {
    {"", "Neg", {6, 13}, unary<Op::kNeg>},
    {"", "Abs", {6, 13}, unary<Op::kAbs>},
    {"", "Sign", {9, 13}, unary<Op::kSign>},
    {"", "Exp", {6, 13}, unary<Op::kExp>},
    {"", "Log", {6, 13}, unary<Op::kLog>},
    {"", "Sqrt", {6, 13}, unary<Op::kSqrt>},
    {"", "Reciprocal", {6, 13}, unary<Op::kReciprocal>},
    {"", "Sin", {7, 22}, unary<Op::kSin>},
    {"", "Cos", {7, 22}, unary<Op::kCos>},
    {"", "Tan", {7, 22}, unary<Op::kTan>},
    {"", "Asin", {7, 22}, unary<Op::kAsin>},
    {"", "Acos", {7, 22}, unary<Op::kAcos>},
    {"", "Atan", {7, 22}, unary<Op::kAtan>},
    {"", "Sinh", {9, 22}, unary<Op::kSinh>},
    {"", "Cosh", {9, 22}, unary<Op::kCosh>},
    {"", "Asinh", {9, 22}, unary<Op::kAsinh>},
    {"", "Acosh", {9, 22}, unary<Op::kAcosh>},
    {"", "Atanh", {9, 22}, unary<Op::kAtanh>},
    {"", "Erf", {9, 13}, unary<Op::kErf>},
    {"", "Floor", {6, 13}, unary<Op::kFloor>},
    {"", "Ceil", {6, 13}, unary<Op::kCeil>},
    {"", "Round", {11, 22}, unary<Op::kRound>},
    {"", "Not", {1}, unary<Op::kLogicalNot>},
    {"", "BitwiseNot", {18}, unary<Op::kBitNot>},
    {"", "IsNaN", {9, 13, 20}, unary<Op::kIsNan>},
    {"", "IsInf", {10, 20}, lower_is_inf},
    {"", "Cast", {6, 9, 13, 19, 21, 23}, lower_cast},
    {"", "CastLike", {15, 19, 21, 23}, lower_cast_like},
    {"", "Add", {7, 13, 14}, binary<Op::kAdd>},
    {"", "Sub", {7, 13, 14}, binary<Op::kSub>},
    {"", "Mul", {7, 13, 14}, binary<Op::kMul>},
    {"", "Div", {7, 13, 14}, binary<Op::kDiv>},
    {"", "Pow", {7, 12, 13, 15}, binary<Op::kPow>},
    {"", "Mod", {10, 13}, lower_mod},
    {"", "Equal", {7, 11, 13, 19}, binary<Op::kEqual>},
    {"", "Less", {7, 9, 13}, binary<Op::kLess>},
    {"", "LessOrEqual", {12, 16}, binary<Op::kLessEqual>},
    {"", "Greater", {7, 9, 13}, binary<Op::kGreater>},
    {"", "GreaterOrEqual", {12, 16}, binary<Op::kGreaterEqual>},
    {"", "And", {7}, binary<Op::kLogicalAnd>},
    {"", "Or", {7}, binary<Op::kLogicalOr>},
    {"", "Xor", {7}, binary<Op::kLogicalXor>},
    {"", "BitwiseAnd", {18}, binary<Op::kBitAnd>},
    {"", "BitwiseOr", {18}, binary<Op::kBitOr>},
    {"", "BitwiseXor", {18}, binary<Op::kBitXor>},
    {"", "BitShift", {11}, lower_bit_shift},
    {"", "Where", {9, 16}, lower_where},
    {"", "Sum", {6, 8, 13}, variadic<Op::kAdd>},
    {"", "Max", {6, 8, 12, 13}, variadic<Op::kMax>},
    {"", "Min", {6, 8, 12, 13}, variadic<Op::kMin>},
    {"", "Mean", {6, 8, 13}, lower_mean},
};

}  // namespace

std::span<const Rule> elementwise_rules() { return kRules; }

}  // namespace sgtc
