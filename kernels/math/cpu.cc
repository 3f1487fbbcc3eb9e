// The math library as generated kernels call it, by value and always inlined: sgtc_NAME_v16f32 on
// 16 lanes and sgtc_NAME_f64 on one double. sgtc_NAME_array_f32 and _array_f64 apply the same code
// to arrays, for the tests.
#include "math/double.h"
#include "math/power.h"
#include "math/random.h"
#include "math/remainder.h"
#include "math/single.h"
#include "math/single_wide.h"
#include "math/trigonometric.h"

SGTC_KERNELS_BEGIN

using sgtc::kernels::kLanes;
using sgtc::kernels::V16f;
namespace math = sgtc::kernels;

#define SGTC_UNARY(name, single, twice)                                                           \
  SGTC_EXPORT __attribute__((always_inline)) V16f sgtc_##name##_v16f32(V16f x) { return single; } \
  SGTC_EXPORT __attribute__((always_inline)) double sgtc_##name##_f64(double x) { return twice; } \
  SGTC_EXPORT void sgtc_##name##_array_f32(const float* from, float* to, int64_t blocks) {        \
    for (int64_t i = 0; i < blocks * kLanes; i += kLanes) {                                       \
      math::store<V16f>(to + i, sgtc_##name##_v16f32(math::load<V16f>(from + i)));                \
    }                                                                                             \
  }                                                                                               \
  SGTC_EXPORT void sgtc_##name##_array_f64(const double* from, double* to, int64_t count) {       \
    for (int64_t i = 0; i < count; ++i) to[i] = sgtc_##name##_f64(from[i]);                       \
  }

#define SGTC_BINARY(name, single, twice)                                                    \
  SGTC_EXPORT __attribute__((always_inline)) V16f sgtc_##name##_v16f32(V16f x, V16f y) {    \
    return single;                                                                          \
  }                                                                                         \
  SGTC_EXPORT __attribute__((always_inline)) double sgtc_##name##_f64(double x, double y) { \
    return twice;                                                                           \
  }                                                                                         \
  SGTC_EXPORT void sgtc_##name##_array_f32(const float* a, const float* b, float* to,       \
                                           int64_t blocks) {                                \
    for (int64_t i = 0; i < blocks * kLanes; i += kLanes) {                                 \
      const V16f x = math::load<V16f>(a + i);                                               \
      math::store<V16f>(to + i, sgtc_##name##_v16f32(x, math::load<V16f>(b + i)));          \
    }                                                                                       \
  }                                                                                         \
  SGTC_EXPORT void sgtc_##name##_array_f64(const double* a, const double* b, double* to,    \
                                           int64_t count) {                                 \
    for (int64_t i = 0; i < count; ++i) to[i] = sgtc_##name##_f64(a[i], b[i]);              \
  }

#define SGTC_WIDE(name) \
  SGTC_UNARY(name, math::convert<V16f>(math::name##_double(math::widen(x))), math::name##_double(x))

SGTC_UNARY(exp, math::exp(x), math::exp(x))
SGTC_UNARY(sigmoid, math::sigmoid(x), math::sigmoid(x))
SGTC_UNARY(log, math::log_single(x), math::log_double(x))
SGTC_UNARY(softplus, math::softplus_single(x), math::softplus_double(x))
SGTC_UNARY(tanh, math::tanh_single(x), math::tanh_double(x))
SGTC_UNARY(erf, math::erf_single(x), math::erf_double(x))
SGTC_UNARY(sin, math::sin_single(x), math::sin_double(x))
SGTC_UNARY(cos, math::cos_single(x), math::cos_double(x))
SGTC_UNARY(tan, math::tan_single(x), math::tan_double(x))
SGTC_WIDE(asin)
SGTC_WIDE(acos)
SGTC_WIDE(atan)
SGTC_WIDE(sinh)
SGTC_WIDE(cosh)
SGTC_WIDE(asinh)
SGTC_WIDE(acosh)
SGTC_WIDE(atanh)
SGTC_BINARY(pow, math::pow_single(x, y), math::pow_double(x, y))
SGTC_BINARY(fmod, math::fmod_single(x, y), math::fmod_double(x, y))

SGTC_EXPORT __attribute__((always_inline)) V16f sgtc_random_uniform_v16f32(
    int64_t seed, int64_t step, int64_t stream, int64_t micro_batch, int64_t first_element) {
  return math::random_uniform(math::random_words(seed, step, stream, micro_batch, first_element));
}

SGTC_EXPORT __attribute__((always_inline)) V16f sgtc_random_normal_v16f32(
    int64_t seed, int64_t step, int64_t stream, int64_t micro_batch, int64_t first_element) {
  return math::random_normal(math::random_words(seed, step, stream, micro_batch, first_element),
                             first_element);
}

SGTC_EXPORT void sgtc_random_uniform_array_f32(int64_t seed, int64_t step, int64_t stream,
                                               int64_t micro_batch, int64_t first_element,
                                               float* to) {
  math::store<V16f>(to, sgtc_random_uniform_v16f32(seed, step, stream, micro_batch, first_element));
}

SGTC_EXPORT void sgtc_random_normal_array_f32(int64_t seed, int64_t step, int64_t stream,
                                              int64_t micro_batch, int64_t first_element,
                                              float* to) {
  math::store<V16f>(to, sgtc_random_normal_v16f32(seed, step, stream, micro_batch, first_element));
}

SGTC_KERNELS_END
