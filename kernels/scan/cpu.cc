// Operators along one axis that keep an order: cumulative sums, positions of extrema, sorting.
// A block has whole lines.
#include "element.h"
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

template <typename T, bool floating>
struct SumType {
  using Type = T;
};
template <typename T>
struct SumType<T, true> {
  using Type = double;
};

/// Sums of floats are kept in double precision.
template <typename T>
SGTC_INLINE void cum_sum(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  using Sum = typename SumType<T, kIsFloat<T>>::Type;
  const AxisShape& s = *shape;
  for_each_line(s, begin, end, [&](int64_t first, int64_t) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + first;
    T* y = static_cast<T*>(tensors[1]) + first;
    Sum sum = 0;
    for (int64_t i = 0; i < s.size; ++i) {
      const int64_t at = (s.reverse != 0 ? s.size - 1 - i : i) * s.inner;
      const Sum before = sum;
      sum = add_elements(sum, static_cast<Sum>(widened(x[at])));
      y[at] = narrowed<T>(s.exclusive != 0 ? before : sum);
    }
  });
}

/// The position of the first (or last) greatest or smallest element; NaN beats every number.
template <bool greatest, typename T>
SGTC_INLINE void arg_extremum(const AxisShape* shape, void* const* tensors, int64_t begin,
                              int64_t end) {
  using A = ArithmeticOf<T>;
  const AxisShape& s = *shape;
  for_each_line(s, begin, end, [&](int64_t first, int64_t line) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + first;
    int64_t best = 0;
    A champion = widened(x[0]);
    for (int64_t i = 1; i < s.size; ++i) {
      const A value = widened(x[i * s.inner]);
      const bool ordered = greatest ? value > champion : value < champion;
      const bool beats = champion == champion && (ordered || value != value);
      const bool equals = value == champion || (value != value && champion != champion);
      if (!beats && !(equals && s.select_last != 0)) continue;
      best = i;
      champion = value;
    }
    static_cast<int64_t*>(tensors[1])[line] = best;
  });
}

/// Whether the element at `a` comes before the one at `b`; ties go by position.
template <typename T>
SGTC_INLINE bool comes_before(const AxisShape& s, const T* x, int64_t a, int64_t b) {
  const auto left = widened(x[a * s.inner]), right = widened(x[b * s.inner]);
  const bool forwards = is_greater(left, right), backwards = is_greater(right, left);
  const bool first = s.largest != 0 ? forwards : backwards;
  const bool second = s.largest != 0 ? backwards : forwards;
  return first || (!second && a < b);
}

/// A heap of the k best positions so far, the worst of them at the root, lies in the result; then
/// the heap is emptied from the back. Equal elements keep their order because positions decide.
template <typename T>
SGTC_INLINE void sink(const AxisShape& s, const T* x, int64_t* heap, int64_t count, int64_t at) {
  while (2 * at + 1 < count) {
    int64_t child = 2 * at + 1;
    if (child + 1 < count &&
        comes_before(s, x, heap[child * s.inner], heap[(child + 1) * s.inner])) {
      ++child;
    }
    if (!comes_before(s, x, heap[at * s.inner], heap[child * s.inner])) return;
    const int64_t moved = heap[at * s.inner];
    heap[at * s.inner] = heap[child * s.inner];
    heap[child * s.inner] = moved;
    at = child;
  }
}

template <typename T>
SGTC_INLINE void top_k(const AxisShape* shape, void* const* tensors, int64_t begin, int64_t end) {
  const AxisShape& s = *shape;
  if (s.k == 0) return;
  for_each_line(s, begin, end, [&](int64_t first, int64_t line) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + first;
    const int64_t to = line / s.inner * s.k * s.inner + line % s.inner;
    T* values = static_cast<T*>(tensors[1]) + to;
    int64_t* heap = static_cast<int64_t*>(tensors[2]) + to;
    for (int64_t i = 0; i < s.k; ++i) heap[i * s.inner] = i;
    for (int64_t i = s.k / 2 - 1; i >= 0; --i) sink(s, x, heap, s.k, i);
    for (int64_t i = s.k; i < s.size; ++i) {
      if (!comes_before(s, x, i, heap[0])) continue;
      heap[0] = i;
      sink(s, x, heap, s.k, 0);
    }
    for (int64_t count = s.k - 1; count > 0; --count) {
      const int64_t worst = heap[0];
      heap[0] = heap[count * s.inner];
      heap[count * s.inner] = worst;
      sink(s, x, heap, count, 0);
    }
    for (int64_t i = 0; i < s.k; ++i) values[i * s.inner] = x[heap[i * s.inner] * s.inner];
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
