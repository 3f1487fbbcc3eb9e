#include "ir/shape.h"

#include <algorithm>
#include <numeric>

#include "support/diagnostics.h"

namespace sgtc {

int64_t element_count(const Shape& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) {
      throw Error("shape " + to_string(shape) + " has more than 2^63 elements");
    }
  }
  return count;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != 0) text += ',';
    text += std::to_string(shape[d]);
  }
  return text + ']';
}

bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result) {
  const size_t rank = std::max(a.size(), b.size());
  Shape shape(rank);
  for (size_t d = 0; d < rank; ++d) {  // d counts from the last dimension
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return false;
    shape[rank - 1 - d] = x == 1 ? y : x;
  }
  *result = std::move(shape);
  return true;
}

}  // namespace sgtc
