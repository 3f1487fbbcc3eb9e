// Matrix products against chains of fused multiply-adds, bit by bit.
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/tiles.h"
#include "shapes.h"
#include "support/catch.h"

using namespace sgtc::testing;
using sgtc::kernels::MatmulShape;

extern "C" {
void sgtc_matmul_f32(const MatmulShape*, void* const*, void* const*, int64_t, int64_t);
void sgtc_matmul_f64(const MatmulShape*, void* const*, void* const*, int64_t, int64_t);
void sgtc_matmul_bf16(const MatmulShape*, void* const*, void* const*, int64_t, int64_t);
void sgtc_matmul_i32(const MatmulShape*, void* const*, void* const*, int64_t, int64_t);

// <16 x float> travels as two vectors of 8 in code for x86-64-v3.
__attribute__((target("avx"))) void sgtc_tile_store(void* const* args, int64_t batch, int64_t row,
                                                    int64_t column, __m256 low, __m256 high,
                                                    int64_t lanes) {
  const auto& target = *static_cast<const TileTarget*>(args[0]);
  float values[16];
  _mm256_storeu_ps(values, low);
  _mm256_storeu_ps(values + 8, high);
  float* to = target.result + (batch * target.rows + row) * target.columns + column;
  for (int64_t i = 0; i < lanes; ++i) to[i] = values[i];
}

void sgtc_tile_prefetch(void* const* args, int64_t batch, int64_t row, int64_t column) {
  const auto& target = *static_cast<const TileTarget*>(args[0]);
  REQUIRE(batch >= 0);
  REQUIRE((row >= 0 && row < target.rows));
  REQUIRE((column >= 0 && column < target.columns));
}
}

namespace {

struct Sizes {
  int64_t batch, rows, columns, depth;
  bool transpose_a, transpose_b;
};

MatmulShape shape_of(const Sizes& s, int64_t block_rows, int64_t block_columns, bool wide) {
  MatmulShape shape = {};
  shape.batch_rank = 1;
  shape.batch[0] = s.batch;
  shape.a_batch_strides[0] = s.rows * s.depth;
  shape.b_batch_strides[0] = s.columns * s.depth;
  shape.rows = s.rows;
  shape.columns = s.columns;
  shape.depth = s.depth;
  shape.a_row_stride = s.transpose_a ? 1 : s.depth;
  shape.a_depth_stride = s.transpose_a ? s.rows : 1;
  shape.b_depth_stride = s.transpose_b ? 1 : s.columns;
  shape.b_column_stride = s.transpose_b ? s.depth : 1;
  shape.block_rows = block_rows;
  shape.block_columns = block_columns;
  shape.wide_vectors = wide;
  return shape;
}

int64_t blocks_of(const MatmulShape& s) {
  const auto parts = [](int64_t n, int64_t block) { return (n + block - 1) / block; };
  return s.batch[0] * parts(s.rows, s.block_rows) * parts(s.columns, s.block_columns);
}

// add_term(k, sum) for each k, in chains over 1 KiB of elements, 16 of which are a group.
template <typename T, typename Term>
T sum_in_groups(int64_t depth, Term add_term) {
  const int64_t slice = 1024 / sizeof(T);
  T total = 0, group = 0, chain = 0;
  for (int64_t k = 0; k < depth; ++k) {
    chain = add_term(k, chain);
    const bool is_last = k + 1 == depth;
    if (!is_last && (k + 1) % slice != 0) continue;
    group += chain;
    chain = 0;
    if (!is_last && (k + 1) % (16 * slice) != 0) continue;
    total += group;
    group = 0;
  }
  return total;
}

template <typename T>
std::vector<T> reference(const MatmulShape& s, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> result;
  for (int64_t n = 0; n < s.batch[0]; ++n) {
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        result.push_back(sum_in_groups<T>(s.depth, [&](int64_t k, T sum) {
          const size_t at_a = static_cast<size_t>(n * s.a_batch_strides[0] + i * s.a_row_stride +
                                                  k * s.a_depth_stride);
          const size_t at_b = static_cast<size_t>(n * s.b_batch_strides[0] + k * s.b_depth_stride +
                                                  j * s.b_column_stride);
          return std::fma(a[at_a], b[at_b], sum);
        }));
      }
    }
  }
  return result;
}

std::vector<float> multiply(const MatmulShape& s, const std::vector<float>& a,
                            const std::vector<float>& b, int64_t step) {
  std::vector<float> result = poisoned(s.batch[0] * s.rows * s.columns);
  TileTarget target = {result.data(), s.rows, s.columns};
  void* args[] = {&target};
  void* tensors[] = {const_cast<float*>(a.data()), const_cast<float*>(b.data()), result.data()};
  run_in_parts(blocks_of(s), step,
               [&](int64_t begin, int64_t end) { sgtc_matmul_f32(&s, args, tensors, begin, end); });
  return result;
}

}  // namespace

TEST_CASE("matmul adds chains of fused multiply-adds, for all transpositions and odd sizes") {
  const Sizes sizes[] = {{1, 1, 1, 1, false, false},      {2, 5, 7, 3, false, false},
                         {1, 6, 16, 9, true, false},      {3, 17, 33, 5, false, true},
                         {1, 13, 31, 300, true, true},    {1, 1, 130, 70, false, false},
                         {1, 200, 1, 33, false, true},    {1, 205, 141, 513, false, false},
                         {2, 24, 64, 257, true, false},   {1, 3, 5, 0, false, false},
                         {1, 7, 18, 4096, false, true},   {1, 13, 5, 4097, true, false},
                         {1, 2, 35, 12600, false, false}, {1, 20, 40, 300, false, false},
                         {1, 64, 33, 40, true, true}};
  for (const Sizes& s : sizes) {
    const auto a = random_numbers(s.batch * s.rows * s.depth, 1);
    const auto b = random_numbers(s.batch * s.columns * s.depth, 2);
    for (const bool wide : {false, true}) {
      INFO(s.rows << " x " << s.columns << " x " << s.depth << (wide ? ", wide" : ""));
      const MatmulShape shape = shape_of(s, 192, 128, wide);
      CHECK(same_bits(multiply(shape, a, b, 100), reference(shape, a, b)));
    }
  }
}

TEST_CASE("the bits of matmul depend on no tile size, vector width or split over threads") {
  for (const Sizes& s : {Sizes{2, 100, 70, 4400, false, false}, {2, 50, 340, 300, false, true}}) {
    const auto a = random_numbers(s.batch * s.rows * s.depth, 3);
    const auto b = random_numbers(s.batch * s.columns * s.depth, 4);
    const std::vector<float> expected = multiply(shape_of(s, 192, 128, false), a, b, 1000);
    CHECK(same_bits(expected, reference(shape_of(s, 192, 128, false), a, b)));
    for (const bool wide : {false, true}) {
      for (const int64_t rows : {12, 24, 96}) {
        for (const int64_t columns : {32, 64}) {
          for (const int64_t step : {1, 3, 8}) {
            CHECK(same_bits(multiply(shape_of(s, rows, columns, wide), a, b, step), expected));
          }
        }
      }
    }
  }
}

TEST_CASE("long products lose few bits") {
  const int64_t depth = 300000;
  const MatmulShape shape = shape_of({1, 6, 16, depth, false, true}, 24, 32, false);
  const auto a = random_numbers(6 * depth, 9);
  std::vector<float> ones(static_cast<size_t>(16 * depth), 1.0f);
  std::vector<float> positive;
  for (float value : a) positive.push_back(std::fabs(value));
  const std::vector<double> exact = [&] {
    std::vector<double> sums;
    for (int64_t row = 0; row < 6; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += positive[static_cast<size_t>(row * depth + k)];
      sums.insert(sums.end(), 16, sum);
    }
    return sums;
  }();
  CHECK(largest_difference(multiply(shape, positive, ones, 1), exact) < 1e-6);
}

TEST_CASE("matmul without elements does nothing, without depth gives zeros") {
  CHECK(multiply(shape_of({1, 0, 5, 3, false, false}, 12, 32, false), {}, {}, 1).empty());
  const MatmulShape empty = shape_of({1, 0, 5, 3, false, false}, 12, 32, false);
  void* tensors[] = {nullptr, nullptr, nullptr};
  sgtc_matmul_f32(&empty, nullptr, tensors, 0, 1);
  const auto zeros = multiply(shape_of({1, 2, 3, 0, false, false}, 12, 32, false), {}, {}, 1);
  CHECK(zeros == std::vector<float>(6, 0.0f));
}

TEST_CASE("matmul broadcasts batch dimensions by strides of zero") {
  MatmulShape s = shape_of({6, 4, 5, 3, false, false}, 12, 32, false);
  s.batch_rank = 2;
  s.batch[0] = 2, s.batch[1] = 3;
  s.a_batch_strides[0] = 12, s.a_batch_strides[1] = 0;
  s.b_batch_strides[0] = 0, s.b_batch_strides[1] = 15;
  const auto a = random_numbers(24, 5), b = random_numbers(45, 6);
  std::vector<float> result = poisoned(6 * 20);
  TileTarget target = {result.data(), 4, 5};
  void* args[] = {&target};
  void* tensors[] = {const_cast<float*>(a.data()), const_cast<float*>(b.data()), nullptr};
  sgtc_matmul_f32(&s, args, tensors, 0, 6);
  for (int64_t n = 0; n < 6; ++n) {
    const std::vector<float> left(a.begin() + n / 3 * 12, a.begin() + n / 3 * 12 + 12);
    const std::vector<float> right(b.begin() + n % 3 * 15, b.begin() + n % 3 * 15 + 15);
    const auto expected =
        reference(shape_of({1, 4, 5, 3, false, false}, 12, 32, false), left, right);
    const std::vector<float> got(result.begin() + n * 20, result.begin() + n * 20 + 20);
    CHECK(same_bits(got, expected));
  }
}

TEST_CASE("matmul in double precision, bfloat16 and integers") {
  const Sizes s = {1, 50, 37, 2500, false, true};
  const MatmulShape shape = shape_of(s, 24, 32, false);
  const auto a = random_numbers<double>(s.rows * s.depth, 7);
  const auto b = random_numbers<double>(s.columns * s.depth, 8);
  std::vector<double> result = poisoned<double>(s.rows * s.columns);
  void* tensors[] = {const_cast<double*>(a.data()), const_cast<double*>(b.data()), result.data()};
  sgtc_matmul_f64(&shape, nullptr, tensors, 0, blocks_of(shape));
  CHECK(same_bits(result, reference(shape, a, b)));

  std::vector<uint16_t> short_a, short_b;
  std::vector<float> rounded_a, rounded_b;
  const auto shorten = [](const std::vector<double>& from, std::vector<uint16_t>& to,
                          std::vector<float>& rounded) {
    for (double value : from) {
      const float single = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &single, 4);
      to.push_back(static_cast<uint16_t>(bits >> 16));
      bits &= 0xffff0000;
      float back;
      std::memcpy(&back, &bits, 4);
      rounded.push_back(back);
    }
  };
  shorten(a, short_a, rounded_a);
  shorten(b, short_b, rounded_b);
  std::vector<float> single = poisoned(s.rows * s.columns);
  TileTarget target = {single.data(), s.rows, s.columns};
  void* args[] = {&target};
  void* short_tensors[] = {short_a.data(), short_b.data(), nullptr};
  sgtc_matmul_bf16(&shape, args, short_tensors, 0, blocks_of(shape));
  CHECK(same_bits(single, reference(shape, rounded_a, rounded_b)));

  std::vector<int32_t> ints_a(6, 1 << 20), ints_b = {1, 2, 3, 4, 5, 1 << 12};
  std::vector<int32_t> product(4, -7);
  const MatmulShape small = shape_of({1, 2, 2, 3, false, false}, 12, 32, false);
  void* int_tensors[] = {ints_a.data(), ints_b.data(), product.data()};
  sgtc_matmul_i32(&small, nullptr, int_tensors, 0, 1);
  CHECK(product == std::vector<int32_t>{9 << 20, (6 << 20), 9 << 20, (6 << 20)});
}
