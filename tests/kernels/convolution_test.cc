// Convolutions and their gradients against plain sums in double precision.
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/convolution_cases.h"
#include "kernels/tiles.h"
#include "shapes.h"
#include "support/catch.h"

using namespace sgtc::testing;

extern "C" {
using Entry = void(const ConvShape*, void* const*, void* const*, int64_t, int64_t);
Entry sgtc_conv_f32, sgtc_conv_input_grad_f32, sgtc_conv_weight_grad_f32;
Entry sgtc_conv_f64, sgtc_conv_input_grad_f64, sgtc_conv_weight_grad_f64;
}

namespace {

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
