// Pools and their gradients. A plane is one channel of one sample; a plane belongs to one block, so
// gradients are sums in a fixed order.
#include "element.h"
#include "pool/taps.h"
#include "shapes.h"
#include "window.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Calls visit(first input position, first output position) of each plane of the blocks.
template <typename Visit>
SGTC_INLINE void for_each_plane(const PoolShape& s, int64_t begin, int64_t end, Visit visit) {
  const int64_t last = minimum(s.planes, end * s.planes_per_block);
  for (int64_t plane = begin * s.planes_per_block; plane < last; ++plane) {
    visit(plane * volume(s.window.input), plane * volume(s.window.output));
  }
}

/// The maxima of up to kRun windows that follow each other in a row: their values and the taps
/// where they are, -1 for windows without an input.
template <typename T>
struct Maxima {
  static constexpr int64_t kRun = 64;
  ArithmeticOf<T> values[kRun];
  int32_t taps[kRun];
};

/// Calls visit(first window, flat; how many; maxima) for all windows of a plane, in order. Taps are
/// the outer loops, so that windows are compared side by side.
template <typename T, typename Visit>
SGTC_INLINE void for_each_maxima(const WindowShape& w, const T* x, Visit visit) {
  constexpr int64_t kRun = Maxima<T>::kRun;
  Maxima<T> maxima;
  const int64_t step = w.strides[2];
  for (int64_t line = 0; line < w.output[0] * w.output[1]; ++line) {
    const int64_t o0 = line / w.output[1], o1 = line % w.output[1];
    for (int64_t first = 0; first < w.output[2]; first += kRun) {
      const int64_t count = minimum(kRun, w.output[2] - first);
      for (int64_t i = 0; i < count; ++i) maxima.taps[i] = -1;
      for (int64_t tap = 0; tap < volume(w.kernel); ++tap) {
        const Position k = position_in(w.kernel, tap);
        const int64_t t0 = input_coordinate(w, 0, o0, k.d0), t1 = input_coordinate(w, 1, o1, k.d1);
        if (!is_inside(t0, w.input[0]) || !is_inside(t1, w.input[1])) continue;
        const int64_t offset = input_coordinate(w, 2, first, k.d2);
        const int64_t begin = offset >= 0 ? 0 : minimum(count, ceil_divide(-offset, step));
        const int64_t end =
            offset >= w.input[2] ? begin : minimum(count, ceil_divide(w.input[2] - offset, step));
        const T* row = x + (t0 * w.input[1] + t1) * w.input[2] + offset;
        for (int64_t i = begin; i < end; ++i) {
          const ArithmeticOf<T> value = widened(row[i * step]);
          const bool better = maxima.taps[i] < 0 || is_greater(value, maxima.values[i]);
          maxima.values[i] = better ? value : maxima.values[i];
          maxima.taps[i] = better ? static_cast<int32_t>(tap) : maxima.taps[i];
        }
      }
      visit(line * w.output[2] + first, count, maxima);
    }
  }
}

template <typename T>
SGTC_INLINE void max_pool(const PoolShape* shape, void* const* tensors, int64_t begin,
                          int64_t end) {
  const PoolShape& s = *shape;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    T* y = static_cast<T*>(tensors[1]) + out;
    for_each_maxima(
        s.window, static_cast<const T*>(tensors[0]) + in,
        [&](int64_t first, int64_t count, const Maxima<T>& maxima) __attribute__((always_inline)) {
          for (int64_t i = 0; i < count; ++i) {
            y[first + i] = maxima.taps[i] < 0 ? lowest<T>() : narrowed<T>(maxima.values[i]);
          }
        });
  });
}

/// Sums of a plane are kept in the type of arithmetic and rounded once: in place where that is the
/// type of the elements, else in pieces that fit on the stack. add(sums, low, high) adds what
/// belongs to positions low … high to sums.
template <typename T, typename Add>
SGTC_INLINE void sum_plane(T* dx, int64_t size, Add add) {
  if constexpr (__is_same(T, ArithmeticOf<T>)) {
    for (int64_t i = 0; i < size; ++i) dx[i] = 0;
    add(dx, int64_t{0}, size);
  } else {
    constexpr int64_t kPiece = 4096;
    ArithmeticOf<T> sums[kPiece];
    for (int64_t low = 0; low < size; low += kPiece) {
      const int64_t high = minimum(size, low + kPiece);
      for (int64_t i = 0; i < high - low; ++i) sums[i] = 0;
      add(sums, low, high);
      for (int64_t i = low; i < high; ++i) dx[i] = narrowed<T>(sums[i - low]);
    }
  }
}

template <typename T>
SGTC_INLINE void max_pool_grad(const PoolShape* shape, void* const* tensors, int64_t begin,
                               int64_t end) {
  const PoolShape& s = *shape;
  const WindowShape& w = s.window;
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* x = static_cast<const T*>(tensors[0]) + in;
    const T* dy = static_cast<const T*>(tensors[2]) + out;
    T* dx = static_cast<T*>(tensors[3]) + in;
    sum_plane(dx, volume(w.input),
              [&](ArithmeticOf<T>* sums, int64_t low, int64_t high) __attribute__((always_inline)) {
                for_each_maxima(w, x,
                                [&](int64_t first, int64_t count, const Maxima<T>& maxima)
                                    __attribute__((always_inline)) {
                                      for (int64_t i = 0; i < count; ++i) {
                                        if (maxima.taps[i] < 0) continue;
                                        const Position tap =
                                            position_in(w.kernel, int64_t{maxima.taps[i]});
                                        const int64_t at = input_under_tap(
                                            w, position_in(w.output, first + i), tap);
                                        if (at >= low && at < high)
                                          sums[at - low] += widened(dy[first + i]);
                                      }
                                    });
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
      y[o] = average_of_window(s, x, position_in(s.window.output, o));
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
