#include "ir/literal.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "support/diagnostics.h"
#include "support/half.h"

namespace sgtc {
namespace {

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// Float to integer: truncated, saturated, NaN to 0.
template <typename T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  // 2^digits is exact in double, the maximum itself may not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= limit) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

// Calls `visit` with a value of the C++ type of an integer dtype.
template <typename Visit>
auto with_integer_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kUInt8:
      return visit(uint8_t{});
    case DType::kUInt16:
      return visit(uint16_t{});
    case DType::kUInt32:
      return visit(uint32_t{});
    case DType::kUInt64:
      return visit(uint64_t{});
    default:
      internal_error(__FILE__, __LINE__, "not an integer type: " + std::string(name_of(dtype)));
  }
}

template <typename T>
LiteralPtr make(DType dtype, const Shape& shape, std::span<const T> values) {
  auto literal = std::make_shared<Literal>(dtype, shape);
  const auto count = static_cast<int64_t>(values.size());
  SGTC_CHECK(count == literal->element_count(), "a literal of shape " + to_string(shape) + " got " +
                                                    std::to_string(count) + " values");
  for (int64_t i = 0; i < count; ++i) {
    const T value = values[static_cast<size_t>(i)];
    if constexpr (std::is_same_v<T, double>) {
      literal->set_double(i, value);
    } else {
      literal->set_int(i, value);
    }
  }
  return literal;
}

}  // namespace

Literal::Literal(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(sgtc::element_count(shape_), size_of(dtype), &bytes)) {
    throw Error("a tensor of shape " + to_string(shape_) + " has more than 2^63 bytes");
  }
  owned_.resize(static_cast<size_t>(bytes));
  view_ = owned_;
}

Literal::Literal(DType dtype, Shape shape, std::span<const std::byte> bytes,
                 std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), view_(bytes) {
  SGTC_CHECK(static_cast<int64_t>(view_.size()) == element_count() * size_of(dtype_),
             "a view of " + std::to_string(view_.size()) + " bytes for shape " + to_string(shape_) +
                 " of " + std::string(name_of(dtype_)));
}

int64_t Literal::element_count() const { return sgtc::element_count(shape_); }

std::span<std::byte> Literal::mutable_bytes() {
  SGTC_CHECK(view_.data() == owned_.data(), "a view of foreign bytes is read-only");
  return owned_;
}

double Literal::as_double(int64_t index) const {
  const std::byte* at = view_.data() + index * size_of(dtype_);
  switch (dtype_) {
    case DType::kBool:
      return load<uint8_t>(at) != 0 ? 1.0 : 0.0;
    case DType::kFloat16:
      return half_to_float(load<uint16_t>(at));
    case DType::kBFloat16:
      return bfloat_to_float(load<uint16_t>(at));
    case DType::kFloat32:
      return load<float>(at);
    case DType::kFloat64:
      return load<double>(at);
    default:
      return with_integer_type(
          dtype_, [&](auto type) { return static_cast<double>(load<decltype(type)>(at)); });
  }
}

int64_t Literal::as_int(int64_t index) const {
  const std::byte* at = view_.data() + index * size_of(dtype_);
  if (is_float(dtype_)) return saturate<int64_t>(as_double(index));
  if (dtype_ == DType::kBool) return load<uint8_t>(at) != 0 ? 1 : 0;
  return with_integer_type(
      dtype_, [&](auto type) { return static_cast<int64_t>(load<decltype(type)>(at)); });
}

void Literal::set_double(int64_t index, double value) {
  std::byte* at = mutable_bytes().data() + index * size_of(dtype_);
  switch (dtype_) {
    case DType::kBool:
      return store<uint8_t>(at, value != 0 || std::isnan(value) ? 1 : 0);
    case DType::kFloat16:
      return store(at, half_from_double(value));
    case DType::kBFloat16:
      return store(at, bfloat_from_double(value));
    case DType::kFloat32:
      return store(at, static_cast<float>(value));
    case DType::kFloat64:
      return store(at, value);
    default:
      return set_int(index, saturate_to(dtype_, value));
  }
}

void Literal::set_int(int64_t index, int64_t value) {
  std::byte* at = mutable_bytes().data() + index * size_of(dtype_);
  if (is_float(dtype_)) {
    if (dtype_ == DType::kFloat32) return store(at, static_cast<float>(value));
    return set_double(index, static_cast<double>(value));
  }
  if (dtype_ == DType::kBool) return store<uint8_t>(at, value != 0 ? 1 : 0);
  with_integer_type(dtype_, [&](auto type) { store(at, static_cast<decltype(type)>(value)); });
}

int64_t saturate_to(DType dtype, double value) {
  return with_integer_type(
      dtype, [&](auto type) { return static_cast<int64_t>(saturate<decltype(type)>(value)); });
}

LiteralPtr make_literal(DType dtype, const Shape& shape, std::span<const double> values) {
  return make(dtype, shape, values);
}

LiteralPtr make_literal(DType dtype, const Shape& shape, std::span<const int64_t> values) {
  return make(dtype, shape, values);
}

LiteralPtr scalar_literal(DType dtype, double value) {
  return make_literal(dtype, {}, std::span<const double>(&value, 1));
}

}  // namespace sgtc
