// Pools and their gradients on GPUs: a thread per element of the result. A gradient collects what
// the windows over its element give it, in their order, so nothing is added by atomic operations;
// windows look for their maximum once for each of their elements.
#include "element.h"
#include "gpu/instructions.h"
#include "pool/taps.h"
#include "shapes.h"
#include "window.h"

namespace sgtc::gpu {
namespace {

using namespace sgtc::kernels;

/// The thread's element of `planes` images of `size` positions.
struct PlanePosition {
  int64_t plane, at;
  bool exists;

  SGTC_DEVICE PlanePosition of_thread(int64_t planes, int64_t size) {
    const int64_t element = static_cast<int64_t>(block_index()) * thread_count() + thread_index();
    if (element >= planes * size) return {0, 0, false};
    return {element / size, element % size, true};
  }
};

/// result[each element] = value(first of the plane's inputs, position of the window).
template <typename T, typename Value>
SGTC_DEVICE void pool(const PoolShape& s, void* const* tensors, Value value) {
  const auto own = PlanePosition::of_thread(s.planes, volume(s.window.output));
  if (!own.exists) return;
  const T* x = static_cast<const T*>(tensors[0]) + own.plane * volume(s.window.input);
  T* y = static_cast<T*>(tensors[1]) + own.plane * volume(s.window.output);
  y[own.at] = value(x, position_in(s.window.output, own.at));
}

template <typename T>
SGTC_DEVICE void max_pool(const PoolShape& s, void* const* tensors) {
  pool<T>(s, tensors, [&](const T* x, Position o) SGTC_LAMBDA {
    const int64_t at = position_of_maximum(s.window, x, o);
    return at < 0 ? lowest<T>() : x[at];
  });
}

template <typename T>
SGTC_DEVICE void average_pool(const PoolShape& s, void* const* tensors) {
  pool<T>(s, tensors,
          [&](const T* x, Position o) SGTC_LAMBDA { return average_of_window(s, x, o); });
}

/// Calls visit(position of the window) for the windows over input `t`, in order.
template <typename Visit>
SGTC_DEVICE void for_each_window(const WindowShape& w, Position t, Visit visit) {
  for (int64_t k0 = w.kernel[0]; k0-- > 0;) {
    const int64_t o0 = output_coordinate(w, 0, t.d0, k0);
    if (o0 < 0) continue;
    for (int64_t k1 = w.kernel[1]; k1-- > 0;) {
      const int64_t o1 = output_coordinate(w, 1, t.d1, k1);
      if (o1 < 0) continue;
      for (int64_t k2 = w.kernel[2]; k2-- > 0;) {
        const int64_t o2 = output_coordinate(w, 2, t.d2, k2);
        if (o2 >= 0) visit(Position{o0, o1, o2});
      }
    }
  }
}

/// dx[each element] = the sum over its windows of share(plane, position of the window), which adds
/// to the sum it is given.
template <typename T, typename Share>
SGTC_DEVICE void collect(const PoolShape& s, T* dx, Share share) {
  const int64_t size = volume(s.window.input);
  const auto own = PlanePosition::of_thread(s.planes, size);
  if (!own.exists) return;
  ArithmeticOf<T> sum = 0;
  for_each_window(s.window, position_in(s.window.input, own.at),
                  [&](Position o) SGTC_LAMBDA { sum += share(own, o); });
  dx[own.plane * size + own.at] = narrowed<T>(sum);
}

template <typename T>
SGTC_DEVICE void max_pool_grad(const PoolShape& s, void* const* tensors) {
  const T* x = static_cast<const T*>(tensors[0]);
  const T* dy = static_cast<const T*>(tensors[1]);
  collect(s, static_cast<T*>(tensors[2]), [&](PlanePosition own, Position o) SGTC_LAMBDA {
    const T* plane = x + own.plane * volume(s.window.input);
    const int64_t from = own.plane * volume(s.window.output) + flat_position(s.window.output, o);
    const bool is_maximum = position_of_maximum(s.window, plane, o) == own.at;
    return is_maximum ? widened(dy[from]) : ArithmeticOf<T>{};
  });
}

template <typename T>
SGTC_DEVICE void average_pool_grad(const PoolShape& s, void* const* tensors) {
  const T* dy = static_cast<const T*>(tensors[0]);
  collect(s, static_cast<T*>(tensors[1]), [&](PlanePosition own, Position o) SGTC_LAMBDA {
    const int64_t from = own.plane * volume(s.window.output) + flat_position(s.window.output, o);
    return widened(dy[from]) / static_cast<ArithmeticOf<T>>(window_count(s, o));
  });
}

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_POOL(entry, name, type)                                                          \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::PoolShape* shape, void* const*, \
                                         void* const* tensors) {                              \
    sgtc::gpu::entry<type>(*shape, tensors);                                                  \
  }
#define SGTC_MAX_POOL(name, type) SGTC_POOL(max_pool, name, type)
#define SGTC_FLOAT_POOLS(name, type)   \
  SGTC_POOL(max_pool_grad, name, type) \
  SGTC_POOL(average_pool, name, type)  \
  SGTC_POOL(average_pool_grad, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_MAX_POOL)
SGTC_FOR_EACH_FLOAT(SGTC_FLOAT_POOLS)
