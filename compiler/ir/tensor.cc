#include "ir/tensor.h"

#include <cmath>

#include "support/diagnostics.h"
#include "support/half.h"

namespace sgtc {

Tensor::Tensor(TensorType tensor_type) : type(std::move(tensor_type)) {
  const auto size = static_cast<size_t>(element_count(type.shape));
  if (is_real()) {
    reals.resize(size);
  } else {
    integers.resize(size);
  }
}

Tensor::Tensor(const Literal& literal) : Tensor(TensorType{literal.dtype(), literal.shape()}) {
  for (size_t i = 0; i < reals.size(); ++i) reals[i] = literal.as_double(static_cast<int64_t>(i));
  for (size_t i = 0; i < integers.size(); ++i) {
    integers[i] = literal.as_int(static_cast<int64_t>(i));
  }
}

Tensor::Tensor(TensorType tensor_type, const std::vector<double>& values)
    : Tensor(*make_literal(tensor_type.dtype, tensor_type.shape, values)) {}

double Tensor::at(int64_t i) const {
  const auto index = static_cast<size_t>(i);
  if (is_real()) return reals[index];
  if (type.dtype == DType::kUInt64) {
    return static_cast<double>(static_cast<uint64_t>(integers[index]));
  }
  return static_cast<double>(integers[index]);
}

void Tensor::copy_element(int64_t to, const Tensor& source, int64_t from) {
  if (is_real()) {
    reals[static_cast<size_t>(to)] = source.reals[static_cast<size_t>(from)];
  } else {
    integers[static_cast<size_t>(to)] = source.integers[static_cast<size_t>(from)];
  }
}

double round_to(DType dtype, double value, Precision precision) {
  if (precision == Precision::kFloat64) return value;
  switch (dtype) {
    case DType::kFloat16:
      return half_to_float(half_from_double(value));
    case DType::kBFloat16:
      return bfloat_to_float(bfloat_from_double(value));
    case DType::kFloat32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

int64_t wrap_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kUInt16:
      return static_cast<uint16_t>(value);
    case DType::kUInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

LiteralPtr to_literal(const Tensor& tensor) {
  auto literal = std::make_shared<Literal>(tensor.type.dtype, tensor.type.shape);
  for (size_t i = 0; i < tensor.reals.size(); ++i) {
    literal->set_double(static_cast<int64_t>(i), tensor.reals[i]);
  }
  for (size_t i = 0; i < tensor.integers.size(); ++i) {
    literal->set_int(static_cast<int64_t>(i), tensor.integers[i]);
  }
  return literal;
}

}  // namespace sgtc
