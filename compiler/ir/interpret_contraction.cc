// Matrix products, convolutions and pools of the interpreter. Sums are plain loops in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

using Sizes = std::array<int64_t, 3>;

// Where element (row, column) of a matrix of an operand is, from the matrix on.
struct MatrixView {
  int64_t row;
  int64_t column;
  int64_t panel_columns = INT64_MAX;  // of a packed operand
  int64_t panel = 0;

  static MatrixView of(const Shape& shape, bool transposed) {
    if (transposed) return {1, shape.back()};
    return {shape.back(), 1};
  }
  static MatrixView packed(const Shape& panels) {
    return {panels[2], 1, panels[2], panels[1] * panels[2]};
  }

  int64_t at(int64_t r, int64_t c) const {
    return r * row + c % panel_columns * column + c / panel_columns * panel;
  }
};

bool is_packed(const Call& call) { return call.attributes.has("packed_columns"); }

void multiply(const Call& call, size_t a, size_t b, size_t c, int64_t inner) {
  const auto x = MatrixView::of(call.shape(0), call.attributes.integer_or("transpose_a", 0) != 0);
  const auto y =
      is_packed(call)
          ? MatrixView::packed(call.shape(1))
          : MatrixView::of(call.shape(1), call.attributes.integer_or("transpose_b", 0) != 0);
  Tensor& result = call.result();
  const int64_t rows = result.type.shape[result.type.shape.size() - 2];
  const int64_t columns = result.type.shape.back();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      const size_t left = a + static_cast<size_t>(x.at(i, k));
      for (int64_t j = 0; j < columns; ++j) {
        const size_t right = b + static_cast<size_t>(y.at(k, j));
        const size_t to = c + static_cast<size_t>(i * columns + j);
        if (result.is_real()) {
          result.reals[to] += call.operand(0).reals[left] * call.operand(1).reals[right];
        } else {
          const auto product = static_cast<uint64_t>(call.operand(0).integers[left]) *
                               static_cast<uint64_t>(call.operand(1).integers[right]);
          result.integers[to] =
              static_cast<int64_t>(static_cast<uint64_t>(result.integers[to]) + product);
        }
      }
    }
  }
}

void matmul(const Call& call) {
  Tensor& result = call.result();
  const Shape& shape = result.type.shape;
  const auto leading = [](const Shape& s) { return Shape(s.begin(), s.end() - 2); };
  const auto matrix = [](const Shape& s) { return s[s.size() - 2] * s.back(); };
  const Shape& a = call.shape(0);
  const bool transposed = call.attributes.integer_or("transpose_a", 0) != 0;
  const int64_t inner = transposed ? a[a.size() - 2] : a.back();
  int64_t batch = 0;
  if (is_packed(call)) {
    multiply(call, 0, 0, 0, inner);
  } else {
    for_each_index(leading(shape), [&](const Shape& index) {
      multiply(
          call, static_cast<size_t>(position_in(leading(a), index) * matrix(a)),
          static_cast<size_t>(position_in(leading(call.shape(1)), index) * matrix(call.shape(1))),
          static_cast<size_t>(batch++ * matrix(shape)), inner);
    });
  }
  for (double& value : result.reals) value = call.rounded(value);
  for (int64_t& value : result.integers) value = wrap_to(result.type.dtype, value);
}

// Up to three spatial dimensions, preceded by dimensions of size 1.
Sizes spatial(const std::vector<int64_t>& list, int64_t filler) {
  Sizes sizes = {filler, filler, filler};
  if (list.size() > sizes.size()) {
    throw Error("expected at most 3 spatial dimensions, found " + std::to_string(list.size()));
  }
  std::copy(list.begin(), list.end(), sizes.end() - static_cast<std::ptrdiff_t>(list.size()));
  return sizes;
}

std::vector<int64_t> spatial_of(const Shape& shape) {
  return std::vector<int64_t>(shape.begin() + 2, shape.end());
}

int64_t volume(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// How windows over `input` give `output` positions.
struct Window {
  Sizes input, output, kernel, strides, low, high, dilations;

  Window(const Attributes& attributes, const std::vector<int64_t>& input_sizes,
         const std::vector<int64_t>& output_sizes, const std::vector<int64_t>& kernel_sizes)
      : input(spatial(input_sizes, 1)),
        output(spatial(output_sizes, 1)),
        kernel(spatial(kernel_sizes, 1)),
        strides(spatial(attributes.integers("strides"), 1)),
        dilations(spatial(attributes.integers("dilations"), 1)) {
    const std::vector<int64_t>& pads = attributes.integers("pads");
    const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
    low = spatial({pads.begin(), pads.begin() + half}, 0);
    high = spatial({pads.begin() + half, pads.end()}, 0);
  }

  // Calls visit(output position, kernel position, input position), the last -1 for padding; `t`
  // beyond the padding is skipped.
  template <typename Visit>
  void for_each_tap(Visit visit) const {
    for (int64_t o = 0; o < volume(output); ++o) {
      for (int64_t k = 0; k < volume(kernel); ++k) {
        int64_t at = 0;
        bool inside = true;
        bool padded = true;
        for (size_t d = 0; d < 3; ++d) {
          const int64_t t = coordinate(o, output, d) * strides[d] - low[d] +
                            coordinate(k, kernel, d) * dilations[d];
          inside = inside && t >= 0 && t < input[d];
          padded = padded && t < input[d] + high[d];
          at = at * input[d] + t;
        }
        if (padded) visit(o, k, inside ? at : -1);
      }
    }
  }

  static int64_t coordinate(int64_t position, const Sizes& sizes, size_t d) {
    if (d == 2) return position % sizes[2];
    if (d == 1) return position / sizes[2] % sizes[1];
    return position / (sizes[1] * sizes[2]);
  }
};

// Adds x * w to y for each pair of a convolution; each of the three visits may be the target.
template <typename Visit>
void for_each_product(const Shape& x, const Shape& w, const Shape& y, const Attributes& attributes,
                      Visit visit) {
  const Window window(attributes, spatial_of(x), spatial_of(y), spatial_of(w));
  const int64_t groups = attributes.integer("groups");
  const int64_t outputs_per_group = w[0] / groups;
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t o = 0; o < w[0]; ++o) {
      for (int64_t c = 0; c < w[1]; ++c) {
        const int64_t channel = o / outputs_per_group * w[1] + c;
        const int64_t x_begin = (n * x[1] + channel) * volume(window.input);
        const int64_t w_begin = (o * w[1] + c) * volume(window.kernel);
        const int64_t y_begin = (n * w[0] + o) * volume(window.output);
        window.for_each_tap([&](int64_t out, int64_t tap, int64_t in) {
          if (in < 0) return;
          visit(static_cast<size_t>(x_begin + in), static_cast<size_t>(w_begin + tap),
                static_cast<size_t>(y_begin + out));
        });
      }
    }
  }
}

// What a pool's window covers at one output position.
template <typename Visit>
void for_each_plane(const Call& call, const Shape& input, const Shape& output, Visit visit) {
  const Window window(call.attributes, spatial_of(input), spatial_of(output),
                      call.attributes.integers("kernel"));
  for (int64_t plane = 0; plane < input[0] * input[1]; ++plane) {
    visit(window, plane * volume(window.input), plane * volume(window.output));
  }
}

// For each output element the position of the first maximum in its window, or -1; NaN is greatest.
std::vector<int64_t> positions_of_maxima(const Call& call, const Shape& output) {
  const Tensor& x = call.operand(0);
  std::vector<int64_t> best(static_cast<size_t>(element_count(output)), -1);
  for_each_plane(call, x.type.shape, output, [&](const Window& window, int64_t from, int64_t to) {
    window.for_each_tap([&](int64_t out, int64_t, int64_t in) {
      if (in < 0) return;
      int64_t& winner = best[static_cast<size_t>(to + out)];
      const double value = x.at(from + in);
      const double champion = winner < 0 ? 0 : x.at(winner);
      const bool greater = value > champion || (std::isnan(value) && !std::isnan(champion));
      if (winner < 0 || greater) winner = from + in;
    });
  });
  return best;
}

void max_pool(const Call& call) {
  Tensor& y = call.result();
  const std::vector<int64_t> best = positions_of_maxima(call, y.type.shape);
  Tensor lowest(TensorType{y.type.dtype, {}});
  if (lowest.is_real()) {
    lowest.reals[0] = -std::numeric_limits<double>::infinity();
  } else {
    lowest.integers[0] = saturate_to(y.type.dtype, -std::numeric_limits<double>::infinity());
  }
  for (size_t i = 0; i < best.size(); ++i) {
    const bool covered = best[i] >= 0;
    y.copy_element(static_cast<int64_t>(i), covered ? call.operand(0) : lowest,
                   covered ? best[i] : 0);
  }
}

void max_pool_grad(const Call& call) {
  const std::vector<int64_t> best = positions_of_maxima(call, call.shape(1));
  std::vector<double>& dx = call.result().reals;
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] >= 0) dx[static_cast<size_t>(best[i])] += call.operand(1).reals[i];
  }
}

// Number of elements that each output position of a plane averages over.
std::vector<double> window_counts(const Call& call, const Window& window) {
  const bool include_pad = call.attributes.integer_or("count_include_pad", 0) != 0;
  std::vector<double> counts(static_cast<size_t>(volume(window.output)), 0);
  window.for_each_tap([&](int64_t out, int64_t, int64_t in) {
    if (in >= 0 || include_pad) counts[static_cast<size_t>(out)] += 1;
  });
  return counts;
}

void average_pool(const Call& call) {
  Tensor& y = call.result();
  for_each_plane(call, call.shape(0), y.type.shape,
                 [&](const Window& window, int64_t from, int64_t to) {
                   const std::vector<double> counts = window_counts(call, window);
                   window.for_each_tap([&](int64_t out, int64_t, int64_t in) {
                     if (in < 0) return;
                     y.reals[static_cast<size_t>(to + out)] +=
                         call.operand(0).reals[static_cast<size_t>(from + in)];
                   });
                   for (size_t i = 0; i < counts.size(); ++i) {
                     double& sum = y.reals[static_cast<size_t>(to) + i];
                     if (counts[i] > 0) sum /= counts[i];
                   }
                 });
}

void average_pool_grad(const Call& call) {
  Tensor& dx = call.result();
  for_each_plane(
      call, dx.type.shape, call.shape(0), [&](const Window& window, int64_t to, int64_t from) {
        const std::vector<double> counts = window_counts(call, window);
        window.for_each_tap([&](int64_t out, int64_t, int64_t in) {
          if (in < 0) return;
          const double dy = call.operand(0).reals[static_cast<size_t>(from + out)];
          dx.reals[static_cast<size_t>(to + in)] += dy / counts[static_cast<size_t>(out)];
        });
      });
}

}  // namespace

void convolution(const Call& call) {
  const std::vector<double>& p = call.operand(0).reals;
  const std::vector<double>& q = call.operand(1).reals;
  std::vector<double>& r = call.result().reals;
  const Shape& shape = call.result().type.shape;
  if (call.op == Op::kConv) {
    for_each_product(call.shape(0), call.shape(1), shape, call.attributes,
                     [&](size_t x, size_t w, size_t y) { r[y] += p[x] * q[w]; });
  } else if (call.op == Op::kConvInputGrad) {
    for_each_product(shape, call.shape(1), call.shape(0), call.attributes,
                     [&](size_t x, size_t w, size_t y) { r[x] += p[y] * q[w]; });
  } else {
    for_each_product(call.shape(0), shape, call.shape(1), call.attributes,
                     [&](size_t x, size_t w, size_t y) { r[w] += p[x] * q[y]; });
  }
}

void pool(const Call& call) {
  switch (call.op) {
    case Op::kMaxPool:
      return max_pool(call);
    case Op::kMaxPoolGrad:
      return max_pool_grad(call);
    case Op::kAveragePool:
      return average_pool(call);
    default:
      return average_pool_grad(call);
  }
}

void contraction(const Call& call) {
  if (call.op == Op::kMatMul) return matmul(call);
  if (call.op <= Op::kConvWeightGrad) {
    convolution(call);
  } else {
    pool(call);
  }
  for (double& value : call.result().reals) value = call.rounded(value);
}

}  // namespace sgtc::interpret
