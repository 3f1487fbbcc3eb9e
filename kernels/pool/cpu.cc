// Pools and their gradients. A plane is one channel of one sample; a plane belongs to one block, so
// gradients are sums in a fixed order.
#include "element.h"
#include "shapes.h"
#include "window.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

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

/// Calls visit(first input position, first output position) of each plane of the blocks.
template <typename Visit>
SGTC_INLINE void for_each_plane(const PoolShape& s, int64_t begin, int64_t end, Visit visit) {
  const int64_t last = minimum(s.planes, end * s.planes_per_block);
  for (int64_t plane = begin * s.planes_per_block; plane < last; ++plane) {
    visit(plane * volume(s.window.input), plane * volume(s.window.output));
  }
}

template <typename T>
SGTC_INLINE T lowest() {
  if constexpr (kIsFloat<T>) {
    return narrowed<T>(-__builtin_inff());
  } else {
    return T(-1) < T(0) ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
  }
}

template <typename T>
SGTC_INLINE void max_pool(const PoolShape* shape, void* const* tensors, int64_t begin,
                          int64_t end) {
  const PoolShape& s = *shape;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + in;
    T* y = static_cast<T*>(tensors[1]) + out;
    for (int64_t o = 0; o < volume(s.window.output); ++o) {
      const int64_t at = position_of_maximum(s.window, x, position_in(s.window.output, o));
      y[o] = at < 0 ? lowest<T>() : x[at];
    }
  });
}

/// Sums of a plane are kept in the type of arithmetic and rounded once, in pieces that fit on the
/// stack: add(sums, low, high) adds what belongs to positions low … high to sums.
template <typename T, typename Add>
SGTC_INLINE void sum_plane(T* dx, int64_t size, Add add) {
  constexpr int64_t kPiece = 4096;
  ArithmeticOf<T> sums[kPiece];
  for (int64_t low = 0; low < size; low += kPiece) {
    const int64_t high = minimum(size, low + kPiece);
    for (int64_t i = 0; i < high - low; ++i) sums[i] = 0;
    add(sums, low, high);
    for (int64_t i = low; i < high; ++i) dx[i] = narrowed<T>(sums[i - low]);
  }
}

template <typename T>
SGTC_INLINE void max_pool_grad(const PoolShape* shape, void* const* tensors, int64_t begin,
                               int64_t end) {
  const PoolShape& s = *shape;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + in;
    const T* dy = static_cast<const T*>(tensors[2]) + out;
    T* dx = static_cast<T*>(tensors[3]) + in;
    sum_plane(dx, volume(s.window.input),
              [&](ArithmeticOf<T>* sums, int64_t low, int64_t high) __attribute__((always_inline)) {
                for (int64_t o = 0; o < volume(s.window.output); ++o) {
                  const int64_t at =
                      position_of_maximum(s.window, x, position_in(s.window.output, o));
                  if (at >= low && at < high) sums[at - low] += widened(dy[o]);
                }
              });
  });
}

template <typename T>
SGTC_INLINE void average_pool(const PoolShape* shape, void* const* tensors, int64_t begin,
                              int64_t end) {
  const PoolShape& s = *shape;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + in;
    T* y = static_cast<T*>(tensors[1]) + out;
    for (int64_t o = 0; o < volume(s.window.output); ++o) {
      const Position at = position_in(s.window.output, o);
      ArithmeticOf<T> sum = 0;
      for_each_input(s.window, at,
                     [&](int64_t from) __attribute__((always_inline)) { sum += widened(x[from]); });
      const int64_t elements = window_count(s, at);
      y[o] = narrowed<T>(elements > 0 ? sum / static_cast<ArithmeticOf<T>>(elements) : sum);
    }
  });
}

template <typename T>
SGTC_INLINE void average_pool_grad(const PoolShape* shape, void* const* tensors, int64_t begin,
                                   int64_t end) {
  const PoolShape& s = *shape;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* dy = static_cast<const T*>(tensors[0]) + out;
    T* dx = static_cast<T*>(tensors[1]) + in;
    sum_plane(dx, volume(s.window.input),
              [&](ArithmeticOf<T>* sums, int64_t low, int64_t high) __attribute__((always_inline)) {
                for (int64_t o = 0; o < volume(s.window.output); ++o) {
                  const Position at = position_in(s.window.output, o);
                  const auto elements = static_cast<ArithmeticOf<T>>(window_count(s, at));
                  const ArithmeticOf<T> share = widened(dy[o]) / elements;
                  for_each_input(s.window, at, [&](int64_t to) __attribute__((always_inline)) {
                    if (to >= low && to < high) sums[to - low] += share;
                  });
                }
              });
  });
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_POOL(entry, name, type)                                                          \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::PoolShape* shape, void* const*, \
                                         void* const* tensors, int64_t begin, int64_t end) {  \
    sgtc::kernels::entry<type>(shape, tensors, begin, end);                                   \
  }
#define SGTC_MAX_POOL(name, type) SGTC_POOL(max_pool, name, type)
#define SGTC_FLOAT_POOLS(name, type)   \
  SGTC_POOL(max_pool_grad, name, type) \
  SGTC_POOL(average_pool, name, type)  \
  SGTC_POOL(average_pool_grad, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_MAX_POOL)
SGTC_FOR_EACH_FLOAT(SGTC_FLOAT_POOLS)

SGTC_KERNELS_END
