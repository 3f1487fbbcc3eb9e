// The vectors of random numbers against the scalar generator.
#include <cmath>
#include <cstdint>

#include "philox.h"
#include "support/catch.h"

extern "C" {
using Draw = void(int64_t seed, int64_t step, int64_t stream, int64_t micro_batch,
                  int64_t first_element, float* to);
Draw sgtc_random_uniform_array_f32, sgtc_random_normal_array_f32;
}

namespace {

using namespace sgtc::random;

uint32_t word_of(int64_t seed, int64_t step, int64_t stream, int64_t micro_batch, int64_t element) {
  return block_of(stream_key(seed, stream), element >> 2, step, micro_batch).words[element & 3];
}

const int64_t kFirstElements[] = {0, 1, 2, 3, 4, 16, 1021, (int64_t{1} << 34) + 7};

}  // namespace

TEST_CASE("uniform vectors are the scalar generator's numbers") {
  for (const int64_t first : kFirstElements) {
    float numbers[16];
    sgtc_random_uniform_array_f32(-5, 3, 77, 2, first, numbers);
    for (int64_t i = 0; i < 16; ++i) {
      CHECK(numbers[i] == unit_closed_open(word_of(-5, 3, 77, 2, first + i)));
    }
  }
}

TEST_CASE("normal vectors are Box and Muller's transformation of the scalar generator") {
  for (const int64_t first : kFirstElements) {
    float numbers[16];
    sgtc_random_normal_array_f32(9, 8, 7, 6, first, numbers);
    for (int64_t i = 0; i < 16; ++i) {
      const int64_t element = first + i, pair = element & ~int64_t{1};
      const double u = unit_open_closed(word_of(9, 8, 7, 6, pair));
      const double v = unit_closed_open(word_of(9, 8, 7, 6, pair + 1));
      const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * M_PI * v;
      const double expected = radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
      CHECK(std::fabs(numbers[i] - expected) <= 1e-6 * (1e-3 + std::fabs(expected)));
    }
  }
}

TEST_CASE("normal numbers have mean 0, deviation 1 and no NaN") {
  double sum = 0, squares = 0;
  const int64_t count = 1 << 16;
  for (int64_t first = 0; first < count; first += 16) {
    float numbers[16];
    sgtc_random_normal_array_f32(1, 1, 1, 0, first, numbers);
    for (float x : numbers) sum += x, squares += double{x} * x;
  }
  CHECK(std::fabs(sum / count) < 0.02);
  CHECK(std::fabs(squares / count - 1) < 0.03);
}
