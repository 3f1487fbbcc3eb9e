// Convolutions and their gradients against plain sums in double precision.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tiles.h"
#include "shapes.h"
#include "support/catch.h"

using namespace sgtc::testing;
using sgtc::kernels::ConvShape;

extern "C" {
using Entry = void(const ConvShape*, void* const*, void* const*, int64_t, int64_t);
Entry sgtc_conv_f32, sgtc_conv_input_grad_f32, sgtc_conv_weight_grad_f32;
Entry sgtc_conv_f64, sgtc_conv_input_grad_f64, sgtc_conv_weight_grad_f64;
}

namespace {

using Sizes = std::array<int64_t, 3>;

struct Case {
  int64_t batch, groups, input_channels, output_channels;
  Sizes input, kernel, strides, pads, dilations;
};

int64_t volume(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

ConvShape shape_of(const Case& c) {
  ConvShape s = {};
  s.batch = c.batch;
  s.groups = c.groups;
  s.input_channels = c.input_channels;
  s.output_channels = c.output_channels;
  for (size_t d = 0; d < 3; ++d) {
    s.window.input[d] = c.input[d];
    s.window.kernel[d] = c.kernel[d];
    s.window.strides[d] = c.strides[d];
    s.window.pads[d] = s.window.pads_end[d] = c.pads[d];
    s.window.dilations[d] = c.dilations[d];
    const int64_t extent = (c.kernel[d] - 1) * c.dilations[d] + 1;
    s.window.output[d] = (c.input[d] + 2 * c.pads[d] - extent) / c.strides[d] + 1;
  }
  s.block_rows = 24;
  s.block_columns = 32;
  return s;
}

int64_t x_size(const ConvShape& s) {
  return s.batch * s.groups * s.input_channels * volume(s.window.input);
}
int64_t w_size(const ConvShape& s) {
  return s.groups * s.output_channels * s.input_channels * volume(s.window.kernel);
}
int64_t y_size(const ConvShape& s) {
  return s.batch * s.groups * s.output_channels * volume(s.window.output);
}

// Calls visit(x position, w position, y position) for each product.
template <typename Visit>
void for_each_product(const ConvShape& s, Visit visit) {
  const auto at = [](const int64_t* sizes, int64_t flat) {
    return Sizes{flat / (sizes[1] * sizes[2]), flat / sizes[2] % sizes[1], flat % sizes[2]};
  };
  const int64_t outputs = volume(s.window.output), taps = volume(s.window.kernel);
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.groups * s.output_channels; ++o) {
      for (int64_t c = 0; c < s.input_channels; ++c) {
        for (int64_t p = 0; p < outputs; ++p) {
          for (int64_t k = 0; k < taps; ++k) {
            int64_t flat = 0;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t t = at(s.window.output, p)[d] * s.window.strides[d] - s.window.pads[d] +
                                at(s.window.kernel, k)[d] * s.window.dilations[d];
              inside = inside && t >= 0 && t < s.window.input[d];
              flat = flat * s.window.input[d] + t;
            }
            const int64_t channel = o / s.output_channels * s.input_channels + c;
            if (!inside) continue;
            visit(static_cast<size_t>(
                      (n * s.groups * s.input_channels + channel) * volume(s.window.input) + flat),
                  static_cast<size_t>((o * s.input_channels + c) * taps + k),
                  static_cast<size_t>((n * s.groups * s.output_channels + o) * outputs + p));
          }
        }
      }
    }
  }
}

int64_t blocks(const ConvShape& s, int64_t batch, int64_t rows, int64_t columns) {
  const auto parts = [](int64_t n, int64_t block) { return (n + block - 1) / block; };
  return batch * parts(rows, s.block_rows) * parts(columns, s.block_columns);
}

// Runs a kernel with a result of [batch, rows, columns] in parts of `step` blocks.
template <typename T>
std::vector<T> run(Entry* entry, const ConvShape& s, const std::vector<T>& a,
                   const std::vector<T>& b, int64_t size, int64_t rows, int64_t columns,
                   int64_t count, int64_t step) {
  std::vector<T> result = poisoned<T>(size);
  TileTarget target = {reinterpret_cast<float*>(result.data()), rows, columns};
  void* args[] = {&target};
  void* tensors[] = {const_cast<T*>(a.data()), const_cast<T*>(b.data()), result.data()};
  run_in_parts(count, step,
               [&](int64_t begin, int64_t end) { entry(&s, args, tensors, begin, end); });
  return result;
}

template <typename T>
std::vector<T> forward(Entry* entry, const ConvShape& s, const std::vector<T>& x,
                       const std::vector<T>& w, int64_t step) {
  const int64_t columns = volume(s.window.output);
  return run(entry, s, x, w, y_size(s), s.groups * s.output_channels, columns,
             blocks(s, s.batch * s.groups, s.output_channels, columns), step);
}

template <typename T>
std::vector<T> input_gradient(Entry* entry, const ConvShape& s, const std::vector<T>& dy,
                              const std::vector<T>& w, int64_t step) {
  const int64_t columns = volume(s.window.input);
  return run(entry, s, dy, w, x_size(s), s.groups * s.input_channels, columns,
             blocks(s, s.batch * s.groups, s.input_channels, columns), step);
}

template <typename T>
std::vector<T> weight_gradient(Entry* entry, const ConvShape& s, const std::vector<T>& x,
                               const std::vector<T>& dy, int64_t step) {
  const int64_t columns = s.input_channels * volume(s.window.kernel);
  return run(entry, s, x, dy, w_size(s), s.groups * s.output_channels, columns,
             blocks(s, s.groups, s.output_channels, columns), step);
}

const Case kCases[] = {
    {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {2, 1, 3, 5, {1, 1, 20}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}},
    {2, 1, 3, 26, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {1, 2, 4, 3, {1, 12, 7}, {1, 3, 2}, {1, 2, 3}, {0, 2, 1}, {1, 2, 1}},
    {2, 3, 1, 2, {1, 8, 40}, {1, 1, 5}, {1, 1, 2}, {0, 0, 4}, {1, 1, 2}},
    {1, 1, 2, 3, {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 2, 1}},
    {3, 1, 40, 30, {1, 7, 7}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
    {1, 1, 2, 2, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 2, 2}, {1, 1, 1}},
};

}  // namespace

TEST_CASE("convolution and its gradients agree with plain sums") {
  for (const Case& c : kCases) {
    const ConvShape s = shape_of(c);
    const auto x = random_numbers(x_size(s), 1), w = random_numbers(w_size(s), 2);
    const auto dy = random_numbers(y_size(s), 3);
    std::vector<double> y(dy.size(), 0), dx(x.size(), 0), dw(w.size(), 0);
    for_each_product(s, [&](size_t i, size_t j, size_t k) {
      y[k] += double{x[i]} * w[j];
      dx[i] += double{dy[k]} * w[j];
      dw[j] += double{dy[k]} * x[i];
    });
    INFO("case " << &c - kCases);
    CHECK(largest_difference(forward(sgtc_conv_f32, s, x, w, 100), y) < 2e-5);
    CHECK(largest_difference(input_gradient(sgtc_conv_input_grad_f32, s, dy, w, 100), dx) < 2e-5);
    CHECK(largest_difference(weight_gradient(sgtc_conv_weight_grad_f32, s, x, dy, 100), dw) < 2e-5);
    const std::vector<double> wide_x(x.begin(), x.end()), wide_w(w.begin(), w.end());
    const std::vector<double> wide_dy(dy.begin(), dy.end());
    CHECK(largest_difference(forward(sgtc_conv_f64, s, wide_x, wide_w, 100), y) < 1e-13);
    CHECK(largest_difference(input_gradient(sgtc_conv_input_grad_f64, s, wide_dy, wide_w, 100),
                             dx) < 1e-13);
    CHECK(largest_difference(weight_gradient(sgtc_conv_weight_grad_f64, s, wide_x, wide_dy, 100),
                             dw) < 1e-13);
  }
}

TEST_CASE("the bits of convolutions depend on no tile size, vector width or split") {
  for (const size_t index : {3, 6}) {
    ConvShape s = shape_of(kCases[index]);
    const auto x = random_numbers(x_size(s), 4), w = random_numbers(w_size(s), 5);
    const auto dy = random_numbers(y_size(s), 6);
    const auto y = forward(sgtc_conv_f32, s, x, w, 100);
    const auto dx = input_gradient(sgtc_conv_input_grad_f32, s, dy, w, 100);
    const auto dw = weight_gradient(sgtc_conv_weight_grad_f32, s, x, dy, 100);
    for (const int64_t rows : {12, 48}) {
      for (const int64_t wide : {0, 1}) {
        s.block_rows = rows;
        s.block_columns = 64;
        s.wide_vectors = wide;
        CHECK(same_bits(forward(sgtc_conv_f32, s, x, w, 1), y));
        CHECK(same_bits(input_gradient(sgtc_conv_input_grad_f32, s, dy, w, 1), dx));
        CHECK(same_bits(weight_gradient(sgtc_conv_weight_grad_f32, s, x, dy, 1), dw));
      }
    }
  }
}

TEST_CASE("convolutions without elements do nothing, without samples give zero gradients") {
  Case c = kCases[2];
  c.batch = 0;
  const ConvShape s = shape_of(c);
  const std::vector<float> none;
  const auto w = random_numbers(w_size(s), 7);
  CHECK(forward(sgtc_conv_f32, s, none, w, 1).empty());
  const auto dw = weight_gradient(sgtc_conv_weight_grad_f32, s, none, none, 1);
  CHECK(dw == std::vector<float>(w.size(), 0.0f));
}
