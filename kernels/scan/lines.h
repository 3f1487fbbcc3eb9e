// Operators along one axis that keep an order, for one line; its elements are s.inner apart.
#pragma once

#include "element.h"
#include "shapes.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// The type in which a cumulative sum is kept: double for floats.
template <typename T, bool floating = kIsFloat<T>>
struct RunningSum {
  using Type = T;
};
template <typename T>
struct RunningSum<T, true> {
  using Type = double;
};
template <typename T>
using RunningSumOf = typename RunningSum<T>::Type;

/// Where step `i` of a cumulative sum is.
SGTC_INLINE int64_t step_of_sum(const AxisShape& s, int64_t i) {
  return (s.reverse != 0 ? s.size - 1 - i : i) * s.inner;
}

/// The cumulative sum of a line.
template <typename T>
SGTC_INLINE void sum_line(const AxisShape& s, const T* x, T* y) {
  using Sum = RunningSumOf<T>;
  Sum sum = 0;
  for (int64_t i = 0; i < s.size; ++i) {
    const int64_t at = step_of_sum(s, i);
    const Sum before = sum;
    sum = add_elements(sum, static_cast<Sum>(widened(x[at])));
    y[at] = narrowed<T>(s.exclusive != 0 ? before : sum);
  }
}

/// The first (or last) greatest or smallest element of a line so far; NaN beats every number.
template <bool greatest, typename A>
struct Champion {
  A value;
  int64_t position;

  /// Meets one whose position is later.
  SGTC_INLINE void meet(const Champion& later, bool select_last) {
    const bool ordered = greatest ? later.value > value : later.value < value;
    const bool beats = value == value && (ordered || later.value != later.value);
    const bool equals = later.value == value || (later.value != later.value && value != value);
    if (beats || (equals && select_last)) *this = later;
  }
};

/// Whether the element at `a` comes before the one at `b`; ties go by position.
template <typename T>
SGTC_INLINE bool comes_before(const AxisShape& s, const T* x, int64_t a, int64_t b) {
  const auto left = widened(x[a * s.inner]), right = widened(x[b * s.inner]);
  const bool forwards = is_greater(left, right), backwards = is_greater(right, left);
  const bool first = s.largest != 0 ? forwards : backwards;
  const bool second = s.largest != 0 ? backwards : forwards;
  return first || (!second && a < b);
}

/// Moves the position at `at` down in a heap whose root is the worst.
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

/// The s.k (at least 1) best elements of a line in order, and their positions. A heap of the best
/// positions so far, the worst of them at the root, lies in the result; then the heap is emptied
/// from the back. Equal elements keep their order because positions decide.
template <typename T>
SGTC_INLINE void select_line(const AxisShape& s, const T* x, T* values, int64_t* heap) {
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
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
