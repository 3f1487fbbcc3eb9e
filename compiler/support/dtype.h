// Element types of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sgtc {

enum class DType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

/// Bytes of one element.
int64_t size_of(DType dtype);

/// The name used in Graph and Plan texts: "f32", "bf16", "i64", "u8", "bool"…
std::string_view name_of(DType dtype);

/// The inverse of `name_of`.
std::optional<DType> dtype_from_name(std::string_view name);

inline bool is_float(DType dtype) { return dtype >= DType::kFloat16; }
inline bool is_unsigned(DType dtype) { return dtype >= DType::kUInt8 && dtype <= DType::kUInt64; }
inline bool is_integer(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }

}  // namespace sgtc
