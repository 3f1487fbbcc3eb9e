// Convolutions for the tests of their kernels: small shapes and sums over all products.
#pragma once

#include <array>
#include <cstdint>

#include "shapes.h"

namespace sgtc::testing {

using kernels::ConvShape;
using Sizes = std::array<int64_t, 3>;

struct Case {
  int64_t batch, groups, input_channels, output_channels;
  Sizes input, kernel, strides, pads, dilations;
};

inline int64_t volume(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

inline ConvShape shape_of(const Case& c) {
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

inline int64_t x_size(const ConvShape& s) {
  return s.batch * s.groups * s.input_channels * volume(s.window.input);
}
inline int64_t w_size(const ConvShape& s) {
  return s.groups * s.output_channels * s.input_channels * volume(s.window.kernel);
}
inline int64_t y_size(const ConvShape& s) {
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

inline const Case kCases[] = {
    {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {2, 1, 3, 5, {1, 1, 20}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}},
    {2, 1, 3, 26, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {1, 2, 4, 3, {1, 12, 7}, {1, 3, 2}, {1, 2, 3}, {0, 2, 1}, {1, 2, 1}},
    {2, 3, 1, 2, {1, 8, 40}, {1, 1, 5}, {1, 1, 2}, {0, 0, 4}, {1, 1, 2}},
    {1, 1, 2, 3, {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 2, 1}},
    {3, 1, 40, 30, {1, 7, 7}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
    {1, 1, 2, 2, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 2, 2}, {1, 1, 1}},
};

}  // namespace sgtc::testing
