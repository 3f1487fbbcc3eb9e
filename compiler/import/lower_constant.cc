// Nodes whose value is known when the model is compiled, since shapes are static.
#include <algorithm>
#include <cmath>

#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

ValueIds lower_identity(Lowering& n) { return {n.input(0)}; }

std::vector<double> reals_of(const google::protobuf::RepeatedField<float>& field) {
  return {field.begin(), field.end()};
}

LiteralPtr constant_of(Lowering& n) {
  if (const auto* value = n.find("value")) return n.literal_attribute(value->t());
  if (const auto* sparse = n.find("sparse_value")) {
    return n.literal_attribute(sparse->sparse_tensor());
  }
  if (const auto* real = n.find("value_float")) return scalar_literal(DType::kFloat32, real->f());
  if (const auto* integer = n.find("value_int")) {
    return make_literal(DType::kInt64, {}, std::vector<int64_t>{integer->i()});
  }
  if (const auto* reals = n.find("value_floats")) {
    return make_literal(DType::kFloat32, {reals->floats_size()}, reals_of(reals->floats()));
  }
  if (const auto* integers = n.find("value_ints")) {
    return make_literal(DType::kInt64, {integers->ints_size()},
                        std::vector<int64_t>(integers->ints().begin(), integers->ints().end()));
  }
  throw Error("expected a tensor, number or list of numbers as value; texts are not supported");
}

ValueIds lower_constant(Lowering& n) { return {n.constant(constant_of(n))}; }

ValueIds lower_shape(Lowering& n) {
  const Shape& shape = n.input_shape(0);
  const int64_t rank = n.input_rank(0);
  const auto clamp = [rank](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  const int64_t start = clamp(n.integer("start", 0));
  const int64_t end = std::max(start, clamp(n.integer("end", rank)));
  return {n.constant_integers({shape.begin() + start, shape.begin() + end})};
}

ValueIds lower_size(Lowering& n) {
  return {n.constant(
      make_literal(DType::kInt64, {}, std::vector<int64_t>{element_count(n.input_shape(0))}))};
}

ValueIds lower_constant_of_shape(Lowering& n) {
  const Shape shape = n.integers_input(0, "the shape");
  ValueId value = n.scalar(DType::kFloat32, 0);
  if (const auto* attribute = n.find("value")) {
    value = n.constant(n.literal_attribute(attribute->t()));
  }
  return {n.broadcast(n.reshape(value, {}), shape)};
}

int64_t range_count(double count) {
  constexpr double kMost = 0x1p62;
  if (!(count < kMost)) throw Error("a range of " + std::to_string(count) + " numbers is too long");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

// start + i·delta for integers; for floats in the same order of operations.
ValueIds lower_range(Lowering& n) {
  const DType dtype = n.input_type(0).dtype;
  int64_t count = 0;
  if (is_float(dtype)) {
    const double delta = n.real_input(2, "the step of a range");
    const double span =
        n.real_input(1, "the end of a range") - n.real_input(0, "the start of a range");
    if (delta == 0) throw Error("the step of a range is 0");
    count = range_count(std::ceil(span / delta));
  } else {
    const int64_t delta = n.integer_input(2, "the step of a range");
    const int64_t start = n.integer_input(0, "the start of a range");
    const int64_t end = n.integer_input(1, "the end of a range");
    int64_t span = 0;
    if (delta == 0) throw Error("the step of a range is 0");
    if (__builtin_sub_overflow(end, start, &span) || span == INT64_MIN || delta == INT64_MIN) {
      throw Error("a range from " + std::to_string(start) + " to " + std::to_string(end) +
                  " by steps of " + std::to_string(delta) + " is too long");
    }
    const int64_t rest = span % delta != 0 ? 1 : 0;
    count = (span < 0) == (delta < 0) ? span / delta + rest : 0;
  }
  const ValueId start = n.reshape(n.input(0), {}), delta = n.reshape(n.input(2), {});
  return {n.add(n.mul(n.iota({count}, 0, dtype), delta), start)};
}

ValueIds lower_eye_like(Lowering& n) {
  const TensorType type = n.input_type(0);
  if (type.shape.size() != 2) {
    throw Error("expected a matrix, found shape " + to_string(type.shape));
  }
  std::optional<DType> dtype = type.dtype;
  if (n.has_attribute("dtype")) {
    dtype = dtype_from_onnx(static_cast<int32_t>(n.integer("dtype", 0)));
    if (!dtype) throw Error("attribute \"dtype\" names a type that is not supported");
  }
  const ValueId rows = n.iota({type.shape[0], 1}, 0, DType::kInt64);
  const ValueId columns = n.iota({1, type.shape[1]}, 1, DType::kInt64);
  const auto shift = static_cast<double>(n.integer("k", 0));
  return {n.cast(n.add(Op::kEqual, {columns, n.add_scalar(rows, shift)}), *dtype)};
}

const std::vector<Rule> kRules = {
    {"", "Identity", {1, 13, 14, 16, 19, 21, 23}, lower_identity},
    {"", "Constant", {1, 9, 11, 12, 13, 19, 21, 23}, lower_constant},
    {"", "Shape", {1, 13, 15, 19, 21, 23}, lower_shape},
    {"", "Size", {1, 13, 19, 21, 23}, lower_size},
    {"", "ConstantOfShape", {9, 20, 21, 23}, lower_constant_of_shape},
    {"", "Range", {11}, lower_range},
    {"", "EyeLike", {9, 22}, lower_eye_like},
};

}  // namespace

std::span<const Rule> constant_rules() { return kRules; }

}  // namespace sgtc
