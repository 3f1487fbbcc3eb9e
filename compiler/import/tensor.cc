#include "import/tensor.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "ir/limits.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores little-endian bytes");

constexpr std::array<std::pair<int32_t, DType>, 13> kDTypes = {{
    {onnx::TensorProto::BOOL, DType::kBool},
    {onnx::TensorProto::INT8, DType::kInt8},
    {onnx::TensorProto::INT16, DType::kInt16},
    {onnx::TensorProto::INT32, DType::kInt32},
    {onnx::TensorProto::INT64, DType::kInt64},
    {onnx::TensorProto::UINT8, DType::kUInt8},
    {onnx::TensorProto::UINT16, DType::kUInt16},
    {onnx::TensorProto::UINT32, DType::kUInt32},
    {onnx::TensorProto::UINT64, DType::kUInt64},
    {onnx::TensorProto::FLOAT16, DType::kFloat16},
    {onnx::TensorProto::BFLOAT16, DType::kBFloat16},
    {onnx::TensorProto::FLOAT, DType::kFloat32},
    {onnx::TensorProto::DOUBLE, DType::kFloat64},
}};

[[noreturn]] void fail_count(const std::string& what, int64_t expected, int64_t found) {
  throw Error("expected " + std::to_string(expected) + " " + what + " for its shape, found " +
              std::to_string(found) + "; the file is damaged, export it again");
}

template <typename Field>
LiteralPtr view_of(const TensorType& type, const Field& field,
                   const std::shared_ptr<const void>& owner) {
  if (field.size() != element_count(type.shape)) {
    fail_count("values", element_count(type.shape), field.size());
  }
  const auto* begin = reinterpret_cast<const std::byte*>(field.data());
  const auto bytes = static_cast<size_t>(field.size()) * sizeof(*field.data());
  return std::make_shared<Literal>(type.dtype, type.shape, std::span(begin, bytes), owner);
}

// int32_data and uint64_data hold narrower types one value per entry; the low bytes are the
// element (for the 16-bit floats: its bit pattern).
template <typename Field>
LiteralPtr narrowed(const TensorType& type, const Field& field) {
  if (field.size() != element_count(type.shape)) {
    fail_count("values", element_count(type.shape), field.size());
  }
  auto literal = std::make_shared<Literal>(type.dtype, type.shape);
  const auto width = static_cast<size_t>(size_of(type.dtype));
  std::byte* target = literal->mutable_bytes().data();
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    std::memcpy(target + static_cast<size_t>(i) * width, &value, width);
  }
  return literal;
}

LiteralPtr typed_literal(const TensorType& type, const onnx::TensorProto& tensor,
                         const std::shared_ptr<const void>& owner) {
  switch (type.dtype) {
    case DType::kFloat32:
      return view_of(type, tensor.float_data(), owner);
    case DType::kFloat64:
      return view_of(type, tensor.double_data(), owner);
    case DType::kInt64:
      return view_of(type, tensor.int64_data(), owner);
    case DType::kUInt64:
    case DType::kUInt32:
      return narrowed(type, tensor.uint64_data());
    default:
      return narrowed(type, tensor.int32_data());
  }
}

int64_t byte_count(const TensorType& type) {
  return element_count(type.shape) * size_of(type.dtype);
}

// Sparse tensors are made dense in memory; a larger one is a mistake or an attack.
constexpr int64_t kMaxDenseElements = int64_t{1} << 28;

// The position of sparse entry `entry` in the dense tensor.
int64_t dense_position(const Shape& shape, const Literal& indices, int64_t entry) {
  const int64_t count = element_count(shape);
  int64_t position = 0;
  if (indices.shape().size() == 1) {
    position = indices.as_int(entry);
  } else {
    const auto rank = static_cast<int64_t>(shape.size());
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = shape[static_cast<size_t>(d)];
      const int64_t index = indices.as_int(entry * rank + d);
      if (index < 0 || index >= size) position = count;
      if (position < count) position = position * size + index;
    }
  }
  if (position < 0 || position >= count) {
    throw Error("entry " + std::to_string(entry) + " of the sparse tensor lies outside " +
                to_string(shape));
  }
  return position;
}

}  // namespace

std::optional<DType> dtype_from_onnx(int32_t data_type) {
  for (const auto& [code, dtype] : kDTypes) {
    if (code == data_type) return dtype;
  }
  return std::nullopt;
}

int32_t onnx_from_dtype(DType dtype) {
  for (const auto& [code, candidate] : kDTypes) {
    if (candidate == dtype) return code;
  }
  internal_error(__FILE__, __LINE__, "dtype without an ONNX code");
}

std::string onnx_dtype_name(int32_t data_type) {
  if (!onnx::TensorProto::DataType_IsValid(data_type)) return std::to_string(data_type);
  return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
}

TensorType type_of(const onnx::TensorProto& tensor) {
  const std::optional<DType> dtype = dtype_from_onnx(tensor.data_type());
  if (!dtype) {
    throw Error("tensors of type " + onnx_dtype_name(tensor.data_type()) +
                " are not supported: expected bool, an integer of 8 to 64 bits, float16, "
                "bfloat16, float or double");
  }
  TensorType type{*dtype, Shape(tensor.dims().begin(), tensor.dims().end())};
  check_size(type);
  return type;
}

LiteralPtr literal_of(const onnx::TensorProto& tensor, const ExternalData& external,
                      const std::shared_ptr<const void>& owner) {
  const TensorType type = type_of(tensor);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    const ExternalData::Bytes bytes = external.bytes_of(tensor, byte_count(type));
    return std::make_shared<Literal>(type.dtype, type.shape, bytes.view, bytes.owner);
  }
  if (!tensor.has_raw_data()) return typed_literal(type, tensor, owner);
  const std::string& raw = tensor.raw_data();
  if (static_cast<int64_t>(raw.size()) != byte_count(type)) {
    fail_count("bytes", byte_count(type), static_cast<int64_t>(raw.size()));
  }
  return std::make_shared<Literal>(type.dtype, type.shape, std::as_bytes(std::span(raw)), owner);
}

TensorType type_of(const onnx::SparseTensorProto& sparse) {
  TensorType type = type_of(sparse.values());
  type.shape.assign(sparse.dims().begin(), sparse.dims().end());
  check_size(type);
  return type;
}

LiteralPtr literal_of(const onnx::SparseTensorProto& sparse, const ExternalData& external,
                      const std::shared_ptr<const void>& owner) {
  const Shape shape = type_of(sparse).shape;
  const LiteralPtr values = literal_of(sparse.values(), external, owner);
  if (values->element_count() == 0) return nullptr;
  if (sgtc::element_count(shape) > kMaxDenseElements) {
    throw Error("the sparse tensor of shape " + to_string(shape) +
                " is too large to be made dense");
  }
  const LiteralPtr indices = literal_of(sparse.indices(), external, owner);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t entries = values->element_count();
  const int64_t expected = indices->shape().size() == 1 ? entries : entries * rank;
  if (indices->element_count() != expected) {
    fail_count("sparse indices", expected, indices->element_count());
  }
  auto dense = std::make_shared<Literal>(values->dtype(), shape);
  const auto width = static_cast<size_t>(size_of(values->dtype()));
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t position = dense_position(shape, *indices, i);
    std::memcpy(dense->mutable_bytes().data() + static_cast<size_t>(position) * width,
                values->bytes().data() + static_cast<size_t>(i) * width, width);
  }
  return dense;
}

bool is_uniform(const Literal& literal) {
  for (int64_t i = 1; i < literal.element_count(); ++i) {
    if (literal.as_double(i) != literal.as_double(0)) return false;
  }
  return true;
}

bool is_transpose(const Literal& a, const Literal& b) {
  Shape expected = b.shape();
  if (expected.size() < 2) return false;
  const int64_t columns = expected[expected.size() - 1], rows = expected[expected.size() - 2];
  std::swap(expected[expected.size() - 1], expected[expected.size() - 2]);
  if (a.shape() != expected) return false;
  const auto size = static_cast<size_t>(size_of(a.dtype()));
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const int64_t within = i % (rows * columns);
    const int64_t other = i - within + within % rows * columns + within / rows;
    if (std::memcmp(&a.bytes()[static_cast<size_t>(i) * size],
                    &b.bytes()[static_cast<size_t>(other) * size], size) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace sgtc
