// How many blocks cover a size, and how large each is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sgtc {

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The least multiple of `step` that is at least `a` and at least 1.
inline int64_t round_up(int64_t a, int64_t step) {
  return ceil_divide(std::max<int64_t>(a, 1), step) * step;
}

/// The least multiple of `step` of which as many cover `size` as of `most`: ranges of blocks are
/// equal work then.
inline int64_t even_part(int64_t size, int64_t most, int64_t step) {
  return round_up(ceil_divide(size, std::max<int64_t>(1, ceil_divide(size, most))), step);
}

}  // namespace sgtc
