// Static shapes of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc {

/// Sizes of the dimensions, outermost first. Empty for a scalar; a size may be zero.
using Shape = std::vector<int64_t>;

/// Number of elements; 1 for a scalar. Throws Error on overflow of 64 bits.
int64_t element_count(const Shape& shape);

/// Row-major strides in elements.
Shape row_major_strides(const Shape& shape);

/// All dimensions in order: 0, 1 … rank-1.
std::vector<int64_t> all_axes(int64_t rank);

/// "[2,3]".
std::string to_string(const Shape& shape);

/// The NumPy broadcast of two shapes, or false when they do not broadcast.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result);

}  // namespace sgtc
