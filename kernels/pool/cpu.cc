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
