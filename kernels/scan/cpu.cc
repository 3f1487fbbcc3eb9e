// Operators along one axis that keep an order: cumulative sums, positions of extrema, sorting.
// A block has whole lines.
#include "element.h"
#include "scan/lines.h"
#include "shapes.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Calls visit(first element, line) for each line of the blocks; a line's elements are s.inner
/// apart.
template <typename Visit>
SGTC_INLINE void for_each_line(const AxisShape& s, int64_t begin, int64_t end, Visit visit) {
  const int64_t last = minimum(s.outer * s.inner, end * s.lines_per_block);
  for (int64_t line = begin * s.lines_per_block; line < last; ++line) {
    visit(line / s.inner * s.size * s.inner + line % s.inner, line);
  }
}

template <typename T>
SGTC_INLINE void cum_sum(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  for_each_line(*shape, begin, end, [&](int64_t first, int64_t) __attribute__((always_inline)) {
    sum_line(*shape, static_cast<const T*>(tensors[0]) + first,
             static_cast<T*>(tensors[1]) + first);
  });
}

template <bool greatest, typename T>
SGTC_INLINE void arg_extremum(const AxisShape* shape, void* const* tensors, int64_t begin,
                              int64_t end) {
  const AxisShape& s = *shape;
  for_each_line(s, begin, end, [&](int64_t first, int64_t line) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + first;
    Champion<greatest, ArithmeticOf<T>> best = {widened(x[0]), 0};
    for (int64_t i = 1; i < s.size; ++i) {
      best.meet({widened(x[i * s.inner]), i}, s.select_last != 0);
    }
    static_cast<int64_t*>(tensors[1])[line] = best.position;
  });
}

template <typename T>
SGTC_INLINE void top_k(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  const AxisShape& s = *shape;
  if (s.k == 0) return;
  for_each_line(s, begin, end, [&](int64_t first, int64_t line) __attribute__((always_inline)) {
    const int64_t to = line / s.inner * s.k * s.inner + line % s.inner;
    select_line(s, static_cast<const T*>(tensors[0]) + first, static_cast<T*>(tensors[1]) + to,
                static_cast<int64_t*>(tensors[2]) + to);
  });
}

template <typename T>
SGTC_INLINE void arg_max(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  arg_extremum<true, T>(shape, tensors, begin, end);
}

template <typename T>
SGTC_INLINE void arg_min(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  arg_extremum<false, T>(shape, tensors, begin, end);
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_SCAN(entry, name, type)                                                          \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::AxisShape* shape, void* const*, \
                                         void* const* tensors, int64_t begin, int64_t end) {  \
    sgtc::kernels::entry<type>(shape, tensors, begin, end);                                   \
  }
#define SGTC_SCANS(name, type)   \
  SGTC_SCAN(cum_sum, name, type) \
  SGTC_SCAN(arg_max, name, type) \
  SGTC_SCAN(arg_min, name, type) \
  SGTC_SCAN(top_k, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_SCANS)

SGTC_KERNELS_END
