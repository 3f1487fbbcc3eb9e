#include "element_type.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace sgtc::runtime {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

template <class T>
double to_double(T value) {
  return static_cast<double>(value);
}
double to_double(Half value) { return half_to_float(value.bits); }
double to_double(BFloat value) { return bfloat_to_float(value.bits); }

template <class T>
double read(const unsigned char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return to_double(value);
}

struct ElementType {
  std::string_view name;
  int64_t size;
  bool integer;
  double (*read)(const unsigned char*);
};

constexpr ElementType kTypes[] = {
    {"bool", 1, false, read<uint8_t>}, {"i8", 1, true, read<int8_t>},
    {"i16", 2, true, read<int16_t>},   {"i32", 4, true, read<int32_t>},
    {"i64", 8, true, read<int64_t>},   {"u8", 1, true, read<uint8_t>},
    {"u16", 2, true, read<uint16_t>},  {"u32", 4, true, read<uint32_t>},
    {"u64", 8, true, read<uint64_t>},  {"f16", 2, false, read<Half>},
    {"bf16", 2, false, read<BFloat>},  {"f32", 4, false, read<float>},
    {"f64", 8, false, read<double>},
};

const ElementType* find_type(std::string_view name) {
  for (const ElementType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

template <int64_t kSize>
void copy(const unsigned char* source, int64_t count, unsigned char* target) {
  std::memcpy(target, source, static_cast<size_t>(count * kSize));
}

template <class From, class To>
void widen(const unsigned char* source, int64_t count, unsigned char* target) {
  for (int64_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, source + i * static_cast<int64_t>(sizeof from), sizeof from);
    To to;
    if constexpr (std::is_class_v<From>) {
      to = static_cast<To>(to_double(from));
    } else {
      to = static_cast<To>(from);
    }
    std::memcpy(target + i * static_cast<int64_t>(sizeof to), &to, sizeof to);
  }
}

struct Widening {
  std::string_view from;
  std::string_view to;
  Converter converter;
};

constexpr Widening kWidenings[] = {
    {"i8", "i16", widen<int8_t, int16_t>},    {"i8", "i32", widen<int8_t, int32_t>},
    {"i8", "i64", widen<int8_t, int64_t>},    {"i16", "i32", widen<int16_t, int32_t>},
    {"i16", "i64", widen<int16_t, int64_t>},  {"i32", "i64", widen<int32_t, int64_t>},
    {"u8", "i16", widen<uint8_t, int16_t>},   {"u8", "i32", widen<uint8_t, int32_t>},
    {"u8", "i64", widen<uint8_t, int64_t>},   {"u16", "i32", widen<uint16_t, int32_t>},
    {"u16", "i64", widen<uint16_t, int64_t>}, {"u32", "i64", widen<uint32_t, int64_t>},
    {"u8", "f32", widen<uint8_t, float>},     {"f16", "f32", widen<Half, float>},
    {"bf16", "f32", widen<BFloat, float>},    {"f16", "f64", widen<Half, double>},
    {"bf16", "f64", widen<BFloat, double>},   {"f32", "f64", widen<float, double>},
};

Converter plain_copy(int64_t size) {
  switch (size) {
    case 1: return copy<1>;
    case 2: return copy<2>;
    case 4: return copy<4>;
    default: return copy<8>;
  }
}

template <class T>
void write(double value, unsigned char* data) {
  const T converted = static_cast<T>(value);
  std::memcpy(data, &converted, sizeof converted);
}

}  // namespace

int64_t size_of_element(std::string_view dtype) {
  const ElementType* type = find_type(dtype);
  return type ? type->size : 0;
}

bool is_integer(std::string_view dtype) {
  const ElementType* type = find_type(dtype);
  return type && type->integer;
}

double read_element(std::string_view dtype, const unsigned char* data) {
  const ElementType* type = find_type(dtype);
  return type ? type->read(data) : std::nan("");
}

void write_element(std::string_view dtype, double value, unsigned char* data) {
  if (dtype == "f32") write<float>(value, data);
  if (dtype == "f64") write<double>(value, data);
  if (dtype == "i32") write<int32_t>(value, data);
  if (dtype == "i64") write<int64_t>(value, data);
}

Converter lossless_conversion(std::string_view from, std::string_view to) {
  if (from == to && find_type(from)) return plain_copy(size_of_element(from));
  for (const Widening& widening : kWidenings) {
    if (widening.from == from && widening.to == to) return widening.converter;
  }
  return nullptr;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const int exponent = bits >> 10 & 31;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | static_cast<uint32_t>(exponent + 112) << 23 | fraction << 13);
}

float bfloat_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(count, dimension, &count)) return -1;
  }
  return count;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace sgtc::runtime
