// Convolutions that have channels last inside, against plain sums in double precision.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "conv_box.h"
#include "kernels/convolution_cases.h"
#include "kernels/tiles.h"
#include "support/catch.h"

using namespace sgtc::testing;

extern "C" {
using Entry = void(const ConvShape*, void* const*, void* const*, int64_t, int64_t);
Entry sgtc_conv_f32, sgtc_conv_input_grad_f32, sgtc_conv_weight_grad_f32;
Entry sgtc_conv_f64, sgtc_conv_input_grad_f64, sgtc_conv_weight_grad_f64;
}

namespace {

using Box = std::array<int64_t, 4>;

// Boxes of samples and positions; any size has to do.
const Box kBoxes[] = {{1, 1, 1, 1}, {1, 1, 2, 5}, {2, 1, 3, 16}, {2, 3, 2, 8}};

int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

ConvShape with_box(ConvShape s, const Box& box, int64_t block_columns) {
  std::copy(box.begin(), box.end(), s.box);
  s.block_columns = block_columns;
  return s;
}

template <typename T>
std::vector<T> run(Entry* entry, const ConvShape& s, const std::vector<T>& a,
                   const std::vector<T>& b, int64_t size, int64_t rows, int64_t columns,
                   int64_t blocks, int64_t step) {
  std::vector<T> result = poisoned<T>(size);
  TileTarget target = {reinterpret_cast<float*>(result.data()), rows, columns};
  void* args[] = {&target};
  void* tensors[] = {const_cast<T*>(a.data()), const_cast<T*>(b.data()), result.data()};
  run_in_parts(blocks, step,
               [&](int64_t begin, int64_t end) { entry(&s, args, tensors, begin, end); });
  return result;
}

// Blocks of a convolution or its input gradient.
int64_t blocks_of(const ConvShape& s, bool gradient) {
  int64_t blocks = parts(s.batch, s.box[0]) * s.groups *
                   parts(gradient ? s.input_channels : s.output_channels, s.block_columns);
  for (int d = 0; d < 3; ++d) {
    const int64_t grid =
        gradient ? parts(s.window.input[d], s.window.strides[d]) : s.window.output[d];
    blocks *= parts(grid, s.box[1 + d]);
  }
  return blocks;
}

template <typename T>
std::vector<T> forward(Entry* entry, const ConvShape& s, const std::vector<T>& x,
                       const std::vector<T>& w, int64_t step) {
  return run(entry, s, x, w, y_size(s), s.groups * s.output_channels, volume(s.window.output),
             blocks_of(s, false), step);
}

template <typename T>
std::vector<T> input_gradient(Entry* entry, const ConvShape& s, const std::vector<T>& dy,
                              const std::vector<T>& w, int64_t step) {
  return run(entry, s, dy, w, x_size(s), s.groups * s.input_channels, volume(s.window.input),
             blocks_of(s, true), step);
}

template <typename T>
std::vector<T> weight_gradient(Entry* entry, const ConvShape& s, const std::vector<T>& x,
                               const std::vector<T>& dy, int64_t step) {
  const int64_t blocks =
      s.groups * parts(s.output_channels, s.block_rows) * parts(s.input_channels, s.block_columns);
  return run(entry, s, x, dy, w_size(s), s.groups * s.output_channels,
             s.input_channels * volume(s.window.kernel), blocks, step);
}

struct Sums {
  std::vector<double> y, dx, dw;
};

Sums sums_of(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& w,
             const std::vector<float>& dy) {
  Sums sums = {std::vector<double>(dy.size(), 0), std::vector<double>(x.size(), 0),
               std::vector<double>(w.size(), 0)};
  for_each_product(s, [&](size_t i, size_t j, size_t k) {
    sums.y[k] += double{x[i]} * w[j];
    sums.dx[i] += double{dy[k]} * w[j];
    sums.dw[j] += double{dy[k]} * x[i];
  });
  return sums;
}

// More channels than a chunk, a tile and a block have, strides with more phases than taps, and
// positions for more than one group of slices of the weight gradient.
const Case kLargeCases[] = {
    {2, 1, 130, 40, {1, 5, 6}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {1, 2, 24, 136, {1, 6, 7}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 2, 2}},
    {2, 1, 20, 33, {1, 1, 40}, {1, 1, 2}, {1, 1, 3}, {0, 0, 2}, {1, 1, 4}},
    {2, 1, 17, 18, {3, 5, 9}, {2, 1, 1}, {1, 3, 2}, {1, 0, 0}, {1, 1, 1}},
    {1, 1, 3, 16, {1, 21, 30}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}},
};

}  // namespace

TEST_CASE("convolutions with channels last agree with plain sums") {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.insert(cases.end(), std::begin(kLargeCases), std::end(kLargeCases));
  for (size_t index = 0; index < cases.size(); ++index) {
    const ConvShape plain = shape_of(cases[index]);
    const auto x = random_numbers(x_size(plain), 1), w = random_numbers(w_size(plain), 2);
    const auto dy = random_numbers(y_size(plain), 3);
    const Sums sums = sums_of(plain, x, w, dy);
    const std::vector<double> wide_x(x.begin(), x.end()), wide_w(w.begin(), w.end());
    const std::vector<double> wide_dy(dy.begin(), dy.end());
    for (const Box& box : kBoxes) {
      INFO("case " << index << ", box " << box[0] << "x" << box[1] << "x" << box[2] << "x"
                   << box[3]);
      const ConvShape s = with_box(plain, box, 32);
      CHECK(largest_difference(forward(sgtc_conv_f32, s, x, w, 100), sums.y) < 2e-5);
      CHECK(largest_difference(input_gradient(sgtc_conv_input_grad_f32, s, dy, w, 100), sums.dx) <
            2e-5);
      CHECK(largest_difference(forward(sgtc_conv_f64, s, wide_x, wide_w, 100), sums.y) < 1e-13);
      CHECK(largest_difference(input_gradient(sgtc_conv_input_grad_f64, s, wide_dy, wide_w, 100),
                               sums.dx) < 1e-13);
      const ConvShape rows = with_box(plain, box, 8);
      CHECK(largest_difference(weight_gradient(sgtc_conv_weight_grad_f32, rows, x, dy, 100),
                               sums.dw) < 2e-5);
      CHECK(largest_difference(
                weight_gradient(sgtc_conv_weight_grad_f64, rows, wide_x, wide_dy, 100), sums.dw) <
            1e-13);
    }
  }
}

TEST_CASE("the bits of convolutions with channels last depend on no block, width or split") {
  for (const Case& c : {kCases[3], kCases[6], kLargeCases[0], kLargeCases[1], kLargeCases[4]}) {
    ConvShape s = with_box(shape_of(c), {1, 1, 2, 4}, 32);
    const auto x = random_numbers(x_size(s), 4), w = random_numbers(w_size(s), 5);
    const auto dy = random_numbers(y_size(s), 6);
    const auto y = forward(sgtc_conv_f32, s, x, w, 100);
    const auto dx = input_gradient(sgtc_conv_input_grad_f32, s, dy, w, 100);
    const auto dw = weight_gradient(sgtc_conv_weight_grad_f32, s, x, dy, 100);
    for (const int64_t wide : {0, 1}) {
      s.wide_vectors = wide;
      for (const int64_t columns : {8, 24}) {
        s.block_columns = columns;
        s.block_rows = columns + 4;
        for (const int64_t step : {1, 3}) {
          CHECK(same_bits(weight_gradient(sgtc_conv_weight_grad_f32, s, x, dy, step), dw));
        }
      }
      for (const Box& box : kBoxes) {
        const ConvShape other = with_box(s, box, 64);
        CHECK(same_bits(forward(sgtc_conv_f32, other, x, w, 1), y));
        CHECK(same_bits(input_gradient(sgtc_conv_input_grad_f32, other, dy, w, 1), dx));
      }
    }
  }
}

TEST_CASE("without samples, gradients of weights with channels last are zero") {
  Case c = kCases[2];
  c.batch = 0;
  const ConvShape s = with_box(shape_of(c), {1, 1, 2, 4}, 8);
  const auto dw = weight_gradient<float>(sgtc_conv_weight_grad_f32, s, {}, {}, 1);
  CHECK(dw == std::vector<float>(static_cast<size_t>(w_size(s)), 0.0f));
}
