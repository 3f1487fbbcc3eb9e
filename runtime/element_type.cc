#include "element_type.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

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

template <class T>
void write(double value, unsigned char* data) {
  T converted;
  if constexpr (std::is_same_v<T, Half>) {
    converted.bits = float_to_half(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat>) {
    converted.bits = float_to_bfloat(static_cast<float>(value));
  } else {
    converted = static_cast<T>(value);
  }
  std::memcpy(data, &converted, sizeof converted);
}

struct ElementType {
  std::string_view name;
  int64_t size;
  bool integer;
  double (*read)(const unsigned char*);
  void (*write)(double, unsigned char*);
};

template <class T>
constexpr ElementType element(std::string_view name, bool integer) {
  return {name, sizeof(T), integer, read<T>, write<T>};
}

constexpr ElementType kTypes[] = {
    element<uint8_t>("bool", false), element<int8_t>("i8", true),    element<int16_t>("i16", true),
    element<int32_t>("i32", true),   element<int64_t>("i64", true),  element<uint8_t>("u8", true),
    element<uint16_t>("u16", true),  element<uint32_t>("u32", true), element<uint64_t>("u64", true),
    element<Half>("f16", false),     element<BFloat>("bf16", false), element<float>("f32", false),
    element<double>("f64", false),
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
    case 1:
      return copy<1>;
    case 2:
      return copy<2>;
    case 4:
      return copy<4>;
    default:
      return copy<8>;
  }
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
  if (const ElementType* type = find_type(dtype)) type->write(value, data);
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

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000) {  // below 2^-14: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24F;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(scaled + 0x1p23F - 0x1p23F));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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
