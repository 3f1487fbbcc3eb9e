// Element types by the names that the plan uses: "f32", "bf16", "i64", "bool"…
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sgtc::runtime {

/// Bytes of one element; 0 for an unknown name.
int64_t size_of_element(std::string_view dtype);

bool is_integer(std::string_view dtype);

/// Reads one element as a double: any type but wider integers than 53 bits is exact.
double read_element(std::string_view dtype, const unsigned char* data);

/// Writes one element, rounded to the type (float types to nearest even).
void write_element(std::string_view dtype, double value, unsigned char* data);

/// Copies `count` elements of one type into another.
using Converter = void (*)(const unsigned char* source, int64_t count, unsigned char* target);

/// The conversion that loses nothing: the same type, or a widening one; null if there is none.
Converter lossless_conversion(std::string_view from, std::string_view to);

float half_to_float(uint16_t bits);
float bfloat_to_float(uint16_t bits);
uint16_t float_to_half(float value);
uint16_t float_to_bfloat(float value);

/// Elements of a shape; -1 if the number does not fit or a dimension is negative.
int64_t element_count(const std::vector<int64_t>& shape);

/// "[2,3]".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace sgtc::runtime
