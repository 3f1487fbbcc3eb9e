// The math library as generated kernels for GPUs call it, by value and always inlined:
// sgtc_NAME_f32 and sgtc_NAME_f64 on one number, and sgtc_approximate_NAME_f32 (hardware.h).
// Functions that are not in hardware.h are the same text as for CPUs (cpu.cc), so the same bits.
#include "math/double.h"
#include "math/hardware.h"
#include "math/normal.h"
#include "math/power.h"
#include "math/remainder.h"
#include "math/single.h"
#include "math/single_wide.h"
#include "math/trigonometric.h"
#include "philox.h"

namespace math = sgtc::kernels;
namespace hardware = sgtc::kernels::hardware;

#define SGTC_MATH SGTC_EXPORT __attribute__((always_inline))

#define SGTC_UNARY(name, single, twice)                         \
  SGTC_MATH float sgtc_##name##_f32(float x) { return single; } \
  SGTC_MATH double sgtc_##name##_f64(double x) { return twice; }

#define SGTC_BINARY(name, single, twice)                                 \
  SGTC_MATH float sgtc_##name##_f32(float x, float y) { return single; } \
  SGTC_MATH double sgtc_##name##_f64(double x, double y) { return twice; }

#define SGTC_WIDE(name) \
  SGTC_UNARY(name, static_cast<float>(math::name##_double(math::widen(x))), math::name##_double(x))

SGTC_UNARY(exp, hardware::exp(x), math::exp(x))
SGTC_UNARY(sigmoid, hardware::sigmoid(x), math::sigmoid(x))
SGTC_UNARY(log, math::log_single(x), math::log_double(x))
SGTC_UNARY(softplus, math::softplus_single(x), math::softplus_double(x))
SGTC_UNARY(tanh, hardware::tanh(x), math::tanh_double(x))
SGTC_UNARY(erf, hardware::erf(x), math::erf_double(x))
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

#define SGTC_APPROXIMATE(name) \
  SGTC_MATH float sgtc_approximate_##name##_f32(float x) { return hardware::approximate_##name(x); }

SGTC_APPROXIMATE(exp)
SGTC_APPROXIMATE(sigmoid)
SGTC_APPROXIMATE(tanh)
SGTC_APPROXIMATE(reciprocal)
SGTC_APPROXIMATE(sqrt)
SGTC_APPROXIMATE(rsqrt)

SGTC_MATH float sgtc_approximate_div_f32(float x, float y) {
  return hardware::approximate_div(x, y);
}

namespace {

SGTC_INLINE sgtc::random::Block random_block(int64_t seed, int64_t step, int64_t stream,
                                             int64_t micro_batch, int64_t element) {
  return sgtc::random::block_of(sgtc::random::stream_key(seed, stream), element >> 2, step,
                                micro_batch);
}

// Word `index` of a block; selections, because registers cannot be indexed.
SGTC_INLINE uint32_t word_of(const sgtc::random::Block& block, int64_t index) {
  const uint32_t low = (index & 1) != 0 ? block.words[1] : block.words[0];
  const uint32_t high = (index & 1) != 0 ? block.words[3] : block.words[2];
  return (index & 2) != 0 ? high : low;
}

}  // namespace

SGTC_MATH float sgtc_random_uniform_f32(int64_t seed, int64_t step, int64_t stream,
                                        int64_t micro_batch, int64_t element) {
  const auto block = random_block(seed, step, stream, micro_batch, element);
  return sgtc::random::unit_closed_open(word_of(block, element));
}

SGTC_MATH float sgtc_random_normal_f32(int64_t seed, int64_t step, int64_t stream,
                                       int64_t micro_batch, int64_t element) {
  const auto block = random_block(seed, step, stream, micro_batch, element);
  const float u = sgtc::random::unit_open_closed(word_of(block, element & ~int64_t{1}));
  const float v = sgtc::random::unit_closed_open(word_of(block, element | 1));
  return math::normal_of_pair(u, v, static_cast<uint64_t>(element & 1));
}
