// NaN, infinities and ties in kernels that compare or weigh.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/tiles.h"
#include "shapes.h"
#include "support/catch.h"

using namespace sgtc::testing;
using sgtc::kernels::AttentionShape;
using sgtc::kernels::AxisShape;
using sgtc::kernels::PoolShape;

extern "C" {
using Scan = void(const AxisShape*, void* const*, void* const*, int64_t, int64_t);
Scan sgtc_arg_max_f32, sgtc_arg_min_f32, sgtc_top_k_f32, sgtc_cum_sum_bf16;
using Pool = void(const PoolShape*, void* const*, void* const*, int64_t, int64_t);
Pool sgtc_max_pool_f32, sgtc_max_pool_grad_f32;
void sgtc_attention_f32(const AttentionShape*, void* const*, void* const*, int64_t, int64_t);
}

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t position(Scan* scan, std::vector<float> x, bool last) {
  AxisShape s = {};
  s.outer = s.inner = s.lines_per_block = 1;
  s.size = static_cast<int64_t>(x.size());
  s.select_last = last;
  int64_t result = -1;
  void* tensors[] = {x.data(), &result, nullptr};
  scan(&s, nullptr, tensors, 0, 1);
  return result;
}

std::vector<int64_t> sorted_positions(std::vector<float> x, int64_t k, bool largest) {
  AxisShape s = {};
  s.outer = s.inner = s.lines_per_block = 1;
  s.size = static_cast<int64_t>(x.size());
  s.k = k;
  s.largest = largest;
  std::vector<float> values(static_cast<size_t>(k));
  std::vector<int64_t> positions(static_cast<size_t>(k), -1);
  void* tensors[] = {x.data(), values.data(), positions.data(), nullptr};
  sgtc_top_k_f32(&s, nullptr, tensors, 0, 1);
  return positions;
}

PoolShape line_pool(int64_t input, int64_t output, int64_t pad) {
  PoolShape s = {};
  s.planes = s.planes_per_block = 1;
  s.window = {{1, 1, input}, {1, 1, output},         {1, 1, 2}, {1, 1, 2},
              {0, 0, pad},   {0, 0, 2 * output - 1}, {1, 1, 1}};
  return s;
}

}  // namespace

TEST_CASE("positions of extrema: first or last of equals, NaN beats every number") {
  CHECK(position(sgtc_arg_max_f32, {1, 3, 3, 2}, false) == 1);
  CHECK(position(sgtc_arg_max_f32, {1, 3, 3, 2}, true) == 2);
  CHECK(position(sgtc_arg_min_f32, {1, 0.0f, -0.0f, 2}, false) == 1);
  CHECK(position(sgtc_arg_min_f32, {1, 0.0f, -0.0f, 2}, true) == 2);
  CHECK(position(sgtc_arg_max_f32, {1, kNaN, kInfinity, kNaN}, false) == 1);
  CHECK(position(sgtc_arg_max_f32, {1, kNaN, kInfinity, kNaN}, true) == 3);
  CHECK(position(sgtc_arg_min_f32, {kNaN, -kInfinity}, false) == 0);
  CHECK(position(sgtc_arg_max_f32, {-kInfinity, -kInfinity}, false) == 0);
}

TEST_CASE("sorting keeps the order of equals and has NaN as the greatest") {
  const std::vector<float> x = {2, kNaN, 5, 2, kInfinity, 5, kNaN, -1};
  CHECK(sorted_positions(x, 8, true) == std::vector<int64_t>{1, 6, 4, 2, 5, 0, 3, 7});
  CHECK(sorted_positions(x, 8, false) == std::vector<int64_t>{7, 0, 3, 2, 5, 4, 1, 6});
  CHECK(sorted_positions(x, 3, true) == std::vector<int64_t>{1, 6, 4});
  CHECK(sorted_positions(x, 1, false) == std::vector<int64_t>{7});
}

TEST_CASE("max pools give NaN and the first of equals its gradient") {
  const PoolShape s = line_pool(6, 4, 1);
  std::vector<float> x = {1, 4, 4, kNaN, 9, 2}, y = poisoned(4), dx = poisoned(6);
  std::vector<float> dy = {1, 2, 3, 4};
  void* forward[] = {x.data(), y.data(), nullptr};
  sgtc_max_pool_f32(&s, nullptr, forward, 0, 1);
  CHECK(y[0] == 1);
  CHECK(y[1] == 4);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 2);
  void* backward[] = {x.data(), dy.data(), dx.data(), nullptr};
  sgtc_max_pool_grad_f32(&s, nullptr, backward, 0, 1);
  CHECK(dx == std::vector<float>{1, 2, 0, 3, 0, 4});
}

TEST_CASE("a window that lies in the padding alone has the maximum -inf and no gradient") {
  const PoolShape s = line_pool(1, 2, 2);
  std::vector<float> x = {7}, y = poisoned(2), dx = poisoned(1), dy = {3, 5};
  void* forward[] = {x.data(), y.data(), nullptr};
  sgtc_max_pool_f32(&s, nullptr, forward, 0, 1);
  CHECK(y == std::vector<float>{-kInfinity, 7});
  void* backward[] = {x.data(), dy.data(), dx.data(), nullptr};
  sgtc_max_pool_grad_f32(&s, nullptr, backward, 0, 1);
  CHECK(dx == std::vector<float>{5});
}

TEST_CASE("cumulative sums of short floats are kept in more bits") {
  AxisShape s = {};
  s.outer = s.inner = s.lines_per_block = 1;
  s.size = 1000;
  std::vector<uint16_t> ones(1000, 0x3f80), sums(1000, 0xffff);
  void* tensors[] = {ones.data(), sums.data(), nullptr};
  sgtc_cum_sum_bf16(&s, nullptr, tensors, 0, 1);
  CHECK(sums[0] == 0x3f80);
  CHECK(sums[999] == 0x447a);  // 1000, where sums rounded to bfloat16 would stop at 256
}

TEST_CASE("attention with a mask of -inf: masked keys do not count, a masked row is NaN") {
  AttentionShape s = {};
  s.batch = s.heads = s.key_heads = 1;
  s.queries = 2;
  s.keys = 130;
  s.key_size = s.value_size = 1;
  s.has_mask = 1;
  s.mask_strides[2] = 130;
  s.mask_strides[3] = 1;
  s.scale = 1;
  for (sgtc::kernels::HeadStrides* rows : {&s.q, &s.k, &s.v, &s.output, &s.maximum, &s.sum}) {
    rows->strides[2] = 1;
  }
  std::vector<float> q = {1, 1}, k(130, 0), v(130), mask(260, -kInfinity);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  mask[100] = mask[129] = 0;
  std::vector<float> y = poisoned(2), maximum = poisoned(2), sum = poisoned(2);
  void* tensors[] = {q.data(), k.data(),       v.data(),   mask.data(),
                     y.data(), maximum.data(), sum.data(), nullptr};
  sgtc_attention_f32(&s, nullptr, tensors, 0, 1);
  CHECK(std::fabs(y[0] - 114.5f) < 1e-4f);
  CHECK(maximum == std::vector<float>{0, -kInfinity});
  CHECK(sum == std::vector<float>{2, 0});
  CHECK(std::isnan(y[1]));
  s.zero_empty = 1;
  sgtc_attention_f32(&s, nullptr, tensors, 0, 1);
  CHECK(std::fabs(y[0] - 114.5f) < 1e-4f);
  CHECK(y[1] == 0);
  CHECK(maximum[1] == 0);
  CHECK(sum[1] == 1);
}
