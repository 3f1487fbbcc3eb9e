// QuantizeLinear and DequantizeLinear with integers of 8, 16 and 32 bits, and products of such
// integers.
//
// A quantized tensor is of integers, so no gradient passes through QuantizeLinear; that of
// DequantizeLinear reaches the scale. Products are computed in double, which holds sums of up to
// 2^21 products of 16-bit integers exactly.
#include "import/checks.h"
#include "import/tensor.h"
#include "import/window.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// A scale or zero point shaped to broadcast against x: of all elements, one per index along the
// axis, or one per block along it.
ValueId spread(Lowering& n, ValueId parameter, const Shape& x) {
  const Shape found = n.shape(parameter);
  if (element_count(found) == 1 && found.size() <= 1) return n.reshape(parameter, {});
  const int64_t axis = normalized_axis(n.integer("axis", 1), static_cast<int64_t>(x.size()));
  const auto at = static_cast<size_t>(axis);
  const int64_t block = n.integer("block_size", 0);
  if (block == 0) {
    if (found != Shape{x[at]}) {
      throw Error("scale and zero point: expected shape [" + std::to_string(x[at]) + "], found " +
                  to_string(found));
    }
    Shape line(x.size(), 1);
    line[at] = x[at];
    return n.reshape(parameter, line);
  }
  checked_factor(block, 1, "attribute \"block_size\"");
  Shape expected = x;
  expected[at] = (x[at] + block - 1) / block;
  if (found != expected) {
    throw Error("scale and zero point of blocks: expected shape " + to_string(expected) +
                ", found " + to_string(found));
  }
  checked_list_size({x[at]}, "the blocks of a dimension");
  std::vector<int64_t> owners;
  for (int64_t i = 0; i < x[at]; ++i) owners.push_back(i / block);
  return n.gather(parameter, n.constant_integers(owners), axis);
}

DType quantized_type(Lowering& n) {
  if (n.has_input(2)) return n.input_type(2).dtype;
  const auto code = static_cast<int32_t>(n.integer("output_dtype", 0));
  if (code == 0) return DType::kUInt8;
  const std::optional<DType> dtype = dtype_from_onnx(code);
  if (!dtype) throw Error("quantization to " + onnx_dtype_name(code) + " is not supported");
  return *dtype;
}

// A vector shaped to broadcast along a dimension, counted from the end; others stay.
ValueId column(Lowering& n, ValueId x, int64_t axis) {
  const Shape shape = n.shape(x);
  if (shape.size() != 1) return x;
  if (shape[0] == 1) return n.reshape(x, {});
  Shape target(static_cast<size_t>(axis), 1);
  target[0] = shape[0];
  return n.reshape(x, target);
}

// saturate(round(x/scale) + zero point).
ValueIds lower_quantize(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  const DType dtype = n.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const ValueId scale = n.cast(spread(n, n.input(1), shape), dtype);
  ValueId y = n.add(Op::kRound, {n.div(n.cast(x, dtype), scale)});
  if (n.has_input(2)) y = n.add(y, n.cast(spread(n, n.input(2), shape), dtype));
  return {n.cast(y, quantized_type(n))};
}

// (x - zero point)·scale, in the scale's type.
ValueIds lower_dequantize(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  const DType dtype = n.input_type(1).dtype;
  ValueId y = n.cast(x, DType::kInt32);
  if (n.has_input(2)) y = n.sub(y, n.cast(spread(n, n.input(2), shape), DType::kInt32));
  return {n.mul(n.cast(y, dtype), spread(n, n.input(1), shape))};
}

// The integers of input `index` without the zero point in input `zero_index`, exactly, as doubles.
// A vector of zero points belongs to dimension `axis`, counted from the end.
ValueId centred(Lowering& n, int index, int zero_index, int64_t axis) {
  const ValueId x = n.cast(n.input(index), DType::kFloat64);
  if (!n.has_input(zero_index)) return x;
  return n.sub(x, column(n, n.cast(n.input(zero_index), DType::kFloat64), axis));
}

// round(y·factor) + zero point, saturated in the zero point's type.
ValueId requantized(Lowering& n, ValueId y, ValueId factor, int zero_index) {
  const ValueId scaled = n.add(Op::kRound, {n.mul(y, factor)});
  const ValueId zero = n.cast(n.input(zero_index), DType::kFloat64);
  return n.cast(n.add(scaled, zero), n.input_type(zero_index).dtype);
}

ValueId scale_of(Lowering& n, int index, int64_t axis) {
  return column(n, n.cast(n.input(index), DType::kFloat64), axis);
}

ValueIds lower_integer_matmul(Lowering& n) {
  return {n.cast(n.matmul(centred(n, 0, 2, 2), centred(n, 1, 3, 1)), DType::kInt32)};
}

// Inputs: a, its scale and zero point, b, its scale and zero point, the result's.
ValueIds lower_quantized_matmul(Lowering& n) {
  const ValueId product = n.matmul(centred(n, 0, 2, 2), centred(n, 3, 5, 1));
  const ValueId factor = n.div(n.mul(scale_of(n, 1, 2), scale_of(n, 4, 1)), scale_of(n, 6, 1));
  return {requantized(n, product, factor, 7)};
}

ValueId integer_convolution(Lowering& n, ValueId x, ValueId w) {
  const Window window = window_of(n, spatial_sizes(n.shape(w)), spatial_sizes(n.shape(x)));
  return n.add(Op::kConv, {x, w}, convolution_attributes(window, n.integer("group", 1)));
}

ValueIds lower_integer_conv(Lowering& n) {
  const ValueId x = centred(n, 0, 2, 1), w = centred(n, 1, 3, n.input_rank(1));
  return {n.cast(integer_convolution(n, x, w), DType::kInt32)};
}

// Inputs: x, its scale and zero point, w, its scale and zero point, the result's, and a bias in
// units of both scales.
ValueIds lower_quantized_conv(Lowering& n) {
  const int64_t outermost = n.input_rank(3), channels = outermost - 1;
  ValueId y = integer_convolution(n, centred(n, 0, 2, 1), centred(n, 3, 5, outermost));
  if (n.has_input(8)) y = n.add(y, column(n, n.cast(n.input(8), DType::kFloat64), channels));
  const ValueId factor =
      n.div(n.mul(scale_of(n, 1, 1), scale_of(n, 4, channels)), scale_of(n, 6, 1));
  return {requantized(n, y, factor, 7)};
}

const std::vector<Rule> kRules = {
    {"", "QuantizeLinear", {10, 13, 19, 21, 23}, lower_quantize},
    {"", "DequantizeLinear", {10, 13, 19, 21, 23}, lower_dequantize},
    {"", "MatMulInteger", {10}, lower_integer_matmul},
    {"", "QLinearMatMul", {10, 21}, lower_quantized_matmul},
    {"", "ConvInteger", {10}, lower_integer_conv},
    {"", "QLinearConv", {10}, lower_quantized_conv},
};

}  // namespace

std::span<const Rule> quantization_rules() { return kRules; }

}  // namespace sgtc
