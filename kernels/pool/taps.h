// The windows of pools: which inputs lie under them, their greatest and their average.
#pragma once

#include "element.h"
#include "shapes.h"
#include "window.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// The taps of a window that begin … end, in one dimension, clipped to the coordinates below
/// `limit` and from `low` on.
struct TapRange {
  int64_t begin, end;
};

SGTC_INLINE TapRange taps_within(const WindowShape& w, int d, int64_t o, int64_t low,
                                 int64_t limit) {
  const int64_t start = o * w.strides[d] - w.pads[d];
  const int64_t step = w.dilations[d];
  const int64_t begin = start >= low ? 0 : ceil_divide(low - start, step);
  const int64_t end = start >= limit ? 0 : ceil_divide(limit - start, step);
  return {minimum(begin, w.kernel[d]), minimum(end, w.kernel[d])};
}

SGTC_INLINE int64_t count(TapRange range) { return maximum(0, range.end - range.begin); }

/// Calls visit(input position) for the taps of window `o` that lie on the input, in order.
template <typename Visit>
SGTC_INLINE void for_each_input(const WindowShape& w, Position o, Visit visit) {
  const TapRange r0 = taps_within(w, 0, o.d0, 0, w.input[0]);
  const TapRange r1 = taps_within(w, 1, o.d1, 0, w.input[1]);
  const TapRange r2 = taps_within(w, 2, o.d2, 0, w.input[2]);
  for (int64_t k0 = r0.begin; k0 < r0.end; ++k0) {
    const int64_t t0 = input_coordinate(w, 0, o.d0, k0);
    for (int64_t k1 = r1.begin; k1 < r1.end; ++k1) {
      const int64_t row = (t0 * w.input[1] + input_coordinate(w, 1, o.d1, k1)) * w.input[2];
      for (int64_t k2 = r2.begin; k2 < r2.end; ++k2) visit(row + input_coordinate(w, 2, o.d2, k2));
    }
  }
}

/// How many elements window `o` averages over: those on the input, or on input and padding.
SGTC_INLINE int64_t window_count(const PoolShape& s, Position o) {
  const WindowShape& w = s.window;
  const bool padded = s.count_include_pad != 0;
  const auto within = [&](int d, int64_t position) __attribute__((always_inline)) {
    return count(taps_within(w, d, position, padded ? -w.pads[d] : 0,
                             w.input[d] + (padded ? w.pads_end[d] : 0)));
  };
  return within(0, o.d0) * within(1, o.d1) * within(2, o.d2);
}

/// The position of the first maximum under window `o`, or -1; NaN is the greatest.
template <typename T>
SGTC_INLINE int64_t position_of_maximum(const WindowShape& w, const T* x, Position o) {
  int64_t best = -1;
  ArithmeticOf<T> champion = {};
  for_each_input(w, o, [&](int64_t at) __attribute__((always_inline)) {
    const ArithmeticOf<T> value = widened(x[at]);
    if (best >= 0 && !is_greater(value, champion)) return;
    best = at;
    champion = value;
  });
  return best;
}

/// What is below all elements: the maximum of a window without inputs.
template <typename T>
SGTC_INLINE T lowest() {
  if constexpr (kIsFloat<T>) {
    return narrowed<T>(-__builtin_inff());
  } else {
    return T(-1) < T(0) ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
  }
}

/// The average of the elements under window `o`.
template <typename T>
SGTC_INLINE T average_of_window(const PoolShape& s, const T* x, Position o) {
  ArithmeticOf<T> sum = 0;
  for_each_input(s.window, o,
                 [&](int64_t from) __attribute__((always_inline)) { sum += widened(x[from]); });
  const int64_t elements = window_count(s, o);
  return narrowed<T>(elements > 0 ? sum / static_cast<ArithmeticOf<T>>(elements) : sum);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
