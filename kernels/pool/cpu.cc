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

/// A whole tensor in memory. Vectors may be read from anywhere in it.
template <typename T>
struct Extent {
  const T* begin;
  const T* end;
};

/// The maxima of up to 16 windows that follow each other in a row. The input of a maximum is at
/// `places` from the window's first one without padding, flat; kNowhere for windows without inputs.
template <typename T>
struct Maxima {
  static constexpr int32_t kNowhere = INT32_MIN;
  using E = ArithmeticOf<T>;
  using V = E __attribute__((vector_size(kLanes * sizeof(E))));
  V values = {};
  V16i places = kNowhere - V16i{};

  /// Takes the inputs at `place` of windows begin … end, which are row[i * step].
  SGTC_INLINE void take(const T* row, int64_t step, int64_t begin, int64_t end, int32_t place,
                        Extent<T> tensor) {
    using Mask = decltype(values == values);
    if (begin >= end) return;
    const bool fits = row >= tensor.begin && row + (kLanes - 1) * step < tensor.end;
    const V inputs = fits ? all_inputs(row, step) : some_inputs(row, step, begin, end);
    V16i lane;
#pragma clang loop unroll(full)
    for (int32_t i = 0; i < kLanes; ++i) lane[i] = i;
    const V16i is_there =
        (lane >= static_cast<int32_t>(begin)) & (lane < static_cast<int32_t>(end));
    const Mask greater = (values == values) & ((inputs != inputs) | (inputs > values));
    const V16i better = is_there & ((places == kNowhere) | __builtin_convertvector(greater, V16i));
    values = __builtin_convertvector(better, Mask) ? inputs : values;
    places = better ? V16i{} + place : places;
  }

  /// Writes the maxima of the first `count` windows.
  SGTC_INLINE void store(T* to, int64_t count) const {
    using Mask = decltype(values == values);
    const V nothing = V{} + static_cast<E>(widened(lowest<T>()));
    const V results = __builtin_convertvector(places == kNowhere, Mask) ? nothing : values;
    T group[kLanes];
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < kLanes; ++i) group[i] = narrowed<T>(results[i]);
    if (count == kLanes) {
      __builtin_memcpy(to, group, sizeof(group));
      return;
    }
    const T* from = group;
#pragma clang loop unroll(full)
    for (int64_t part = kLanes / 2; part > 0; part /= 2) {
      if ((count & part) == 0) continue;
      __builtin_memcpy(to, from, static_cast<size_t>(part) * sizeof(T));
      to += part;
      from += part;
    }
  }

 private:
  /// row[i * step]. Every other element out of two vectors that end with the last one.
  SGTC_INLINE static V all_inputs(const T* row, int64_t step) {
    if constexpr (__is_same(T, float)) {
      if (step == 1) return load<V>(row);
      if (step == 2) {
        return __builtin_shufflevector(load<V>(row), load<V>(row + kLanes - 1), 0, 2, 4, 6, 8, 10,
                                       12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
      }
    }
    return some_inputs(row, step, 0, kLanes);
  }

  /// Lanes outside of begin … end get an input that is inside.
  SGTC_INLINE static V some_inputs(const T* row, int64_t step, int64_t begin, int64_t end) {
    V inputs;
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < kLanes; ++i) {
      inputs[i] = widened(row[minimum(maximum(i, begin), end - 1) * step]);
    }
    return inputs;
  }
};

/// Calls visit(first window, flat; how many; the first one's input without padding; maxima) for all
/// windows of a plane, in order. Taps are the outer loops, so that windows are compared side by
/// side.
template <typename T, typename Visit>
SGTC_INLINE void for_each_maxima(const WindowShape& w, const T* x, Extent<T> tensor, Visit visit) {
  const int64_t step = w.strides[2];
  const int64_t reach = (w.output[2] - 1) * step + (w.kernel[2] - 1) * w.dilations[2];
  const bool has_padding = w.pads[2] > 0 || reach - w.pads[2] >= w.input[2];
  for (int64_t line = 0; line < w.output[0] * w.output[1]; ++line) {
    const Position o = {line / w.output[1], line % w.output[1], 0};
    for (int64_t first = 0; first < w.output[2]; first += kLanes) {
      const int64_t count = minimum(kLanes, w.output[2] - first);
      const Position corner = {input_coordinate(w, 0, o.d0, int64_t{0}),
                               input_coordinate(w, 1, o.d1, int64_t{0}),
                               input_coordinate(w, 2, first, int64_t{0})};
      Maxima<T> maxima;
      for (int64_t tap = 0; tap < volume(w.kernel); ++tap) {
        const Position k = position_in(w.kernel, tap);
        const Position from = {k.d0 * w.dilations[0], k.d1 * w.dilations[1], k.d2 * w.dilations[2]};
        if (!is_inside(corner.d0 + from.d0, w.input[0])) continue;
        if (!is_inside(corner.d1 + from.d1, w.input[1])) continue;
        const int64_t offset = corner.d2 + from.d2;
        int64_t begin = 0, end = count;
        if (has_padding) {
          if (offset < 0) begin = minimum(count, ceil_divide(-offset, step));
          end =
              offset >= w.input[2] ? begin : minimum(count, ceil_divide(w.input[2] - offset, step));
        }
        const int64_t place = flat_position(w.input, from);
        maxima.take(x + flat_position(w.input, corner) + place, step, begin, end,
                    static_cast<int32_t>(place), tensor);
      }
      visit(line * w.output[2] + first, count, flat_position(w.input, corner), maxima);
    }
  }
}

template <typename T>
SGTC_INLINE void max_pool(const PoolShape* shape, void* const* tensors, int64_t begin,
                          int64_t end) {
  const PoolShape& s = *shape;
  const T* x = static_cast<const T*>(tensors[0]);
  const Extent<T> tensor = {x, x + s.planes * volume(s.window.input)};
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    T* y = static_cast<T*>(tensors[1]) + out;
    for_each_maxima(s.window, x + in, tensor,
                    [&](int64_t first, int64_t count, int64_t, const Maxima<T>& maxima)
                        __attribute__((always_inline)) { maxima.store(y + first, count); });
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
  const T* all = static_cast<const T*>(tensors[0]);
  const Extent<T> tensor = {all, all + s.planes * volume(w.input)};
  for_each_plane(s, begin, end, [&](int64_t in, int64_t out) __attribute__((always_inline)) {
    const T* x = all + in;
    const T* dy = static_cast<const T*>(tensors[1]) + out;
    T* dx = static_cast<T*>(tensors[2]) + in;
    sum_plane(dx, volume(w.input),
              [&](ArithmeticOf<T>* sums, int64_t low, int64_t high) __attribute__((always_inline)) {
                for_each_maxima(w, x, tensor,
                                [&](int64_t first, int64_t count, int64_t corner,
                                    const Maxima<T>& maxima) __attribute__((always_inline)) {
#pragma clang loop unroll(full)
                                  for (int64_t i = 0; i < kLanes; ++i) {
                                    if (i >= count || maxima.places[i] == Maxima<T>::kNowhere)
                                      continue;
                                    const int64_t at = corner + i * w.strides[2] + maxima.places[i];
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
