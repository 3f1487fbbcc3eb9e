// Fourier transforms, as products with matrices of cosines and sines: exact in the order of a sum,
// differentiable like any product, and O(n²) per transform, which is fine for the lengths of audio
// frames. A limit on the size of the matrices refuses longer ones. And the filters that follow
// them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/checks.h"
#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kMaxMatrix = int64_t{1} << 24;

struct Complex {
  ValueId real = kNone;
  ValueId imaginary = kNone;  // kNone: 0
};

struct Transform {
  int64_t length = 0;
  bool inverse = false;
  bool onesided = false;
};

// factor·weight(i)·cos or sin of 2πik/length for inputs i and outputs k.
ValueId wave_matrix(Lowering& n, DType dtype, int64_t inputs, int64_t outputs,
                    const Transform& transform, bool sine) {
  if (inputs > kMaxMatrix || outputs > kMaxMatrix || inputs * outputs > kMaxMatrix) {
    throw Error("a Fourier transform of length " + std::to_string(transform.length) +
                " is too long: it is computed as a product with a matrix of " +
                std::to_string(inputs) + " x " + std::to_string(outputs) + " elements, at most " +
                std::to_string(kMaxMatrix) + " are allowed");
  }
  const double factor = transform.inverse ? 1 / static_cast<double>(transform.length) : 1;
  std::vector<double> values;
  for (int64_t i = 0; i < inputs; ++i) {
    // The other half of a one-sided spectrum mirrors all but the first and the middle frequency.
    const bool mirrored =
        transform.inverse && transform.onesided && i != 0 && 2 * i != transform.length;
    for (int64_t k = 0; k < outputs; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i * k % transform.length) /
                           static_cast<double>(transform.length);
      values.push_back(factor * (mirrored ? 2 : 1) * (sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return n.constant(make_literal(dtype, {inputs, outputs}, values));
}

// `x` cut or filled up with zeros to `size` along its last dimension.
ValueId resized(Lowering& n, ValueId x, int64_t size) {
  const int64_t axis = n.rank(x) - 1, found = n.shape(x).back();
  if (found >= size) return n.slice(x, axis, 0, size);
  std::vector<int64_t> low(n.shape(x).size(), 0), high = low;
  high.back() = size - found;
  return n.add(Op::kPad, {x, n.scalar(n.dtype(x), 0)}, {{"low", low}, {"high", high}});
}

// Transforms the last dimension.
Complex transformed(Lowering& n, const Complex& x, const Transform& transform) {
  const int64_t half = transform.length / 2 + 1;
  const bool from_half = transform.inverse && transform.onesided;
  const int64_t inputs = from_half ? half : transform.length;
  const int64_t outputs = transform.onesided && !transform.inverse ? half : transform.length;
  const DType dtype = n.dtype(x.real);
  const ValueId cosines = wave_matrix(n, dtype, inputs, outputs, transform, false);
  const ValueId sines = wave_matrix(n, dtype, inputs, outputs, transform, true);
  const auto times = [&](ValueId part, ValueId matrix) {
    const ValueId row = n.rank(part) == 1 ? n.unsqueeze(part, {0}) : part;
    const ValueId product = n.matmul(resized(n, row, inputs), matrix);
    return n.rank(part) == 1 ? n.squeeze(product, {0}) : product;
  };
  // (a + bi)(cos - i·sin), and with + for the inverse.
  Complex y{times(x.real, cosines), times(x.real, sines)};
  if (!transform.inverse) y.imaginary = n.neg(y.imaginary);
  if (x.imaginary == kNone) return y;
  const ValueId crossed = times(x.imaginary, sines);
  y.real = transform.inverse ? n.sub(y.real, crossed) : n.add(y.real, crossed);
  y.imaginary = n.add(y.imaginary, times(x.imaginary, cosines));
  return y;
}

// The parts of x [.., 1 or 2] with `axis` moved to the end.
Complex split_parts(Lowering& n, ValueId x, const std::vector<int64_t>& perm) {
  const int64_t last = n.rank(x) - 1, parts = n.shape(x).back();
  if (parts != 1 && parts != 2) {
    throw Error("the last dimension of the signal: expected 1 (real) or 2 (complex), found " +
                std::to_string(parts));
  }
  Complex result;
  result.real = n.transpose(n.squeeze(n.slice(x, last, 0, 1), {last}), perm);
  if (parts == 2) {
    result.imaginary = n.transpose(n.squeeze(n.slice(x, last, 1, 1), {last}), perm);
  }
  return result;
}

ValueId join_parts(Lowering& n, const Complex& y, const std::vector<int64_t>& perm,
                   bool real_only) {
  const int64_t rank = n.rank(y.real);
  const ValueId real = n.unsqueeze(n.transpose(y.real, perm), {rank});
  if (real_only) return real;
  return n.concat({real, n.unsqueeze(n.transpose(y.imaginary, perm), {rank})}, rank);
}

ValueIds lower_dft(Lowering& n) {
  const ValueId x = n.input(0);
  const int64_t rank = n.rank(x);
  if (rank < 2) throw Error("expected a signal [.., 1 or 2], found " + to_string(n.shape(x)));
  const int64_t given = n.since() >= 20 ? (n.has_input(2) ? n.integer_input(2, "the axis") : -2)
                                        : n.integer("axis", 1);
  const int64_t axis = normalized_axis(given, rank);
  if (axis == rank - 1) throw Error("the axis is that of real and imaginary parts");
  Transform transform;
  transform.inverse = n.integer("inverse", 0) != 0;
  transform.onesided = n.integer("onesided", 0) != 0;
  const int64_t size = n.shape(x)[static_cast<size_t>(axis)];
  const bool from_half = transform.inverse && transform.onesided;
  transform.length = n.has_input(1) ? n.integer_input(1, "the length")
                     : from_half    ? 2 * (size - 1)
                                    : size;
  if (transform.length < 1) {
    throw Error("the length of the transform: expected 1 or more, found " +
                std::to_string(transform.length));
  }
  // A swap of two dimensions is its own inverse.
  std::vector<int64_t> swap = all_axes(rank - 1);
  std::swap(swap[static_cast<size_t>(axis)], swap.back());
  const Complex y = transformed(n, split_parts(n, x, swap), transform);
  return {join_parts(n, y, swap, from_half)};
}

// Frames of the signal [B, L, 1 or 2], each times the window, transformed: [B, frames, bins, 2].
ValueIds lower_stft(Lowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) != 3) {
    throw Error("expected a signal [batch, length, 1 or 2], found " + to_string(n.shape(x)));
  }
  const int64_t step = n.integer_input(1, "the step between frames");
  const int64_t length = n.has_input(3)   ? n.integer_input(3, "the length of a frame")
                         : n.has_input(2) ? element_count(n.input_shape(2))
                                          : 0;
  const int64_t total = n.shape(x)[1];
  if (step < 1 || length < 1 || length > total) {
    throw Error("expected frames of 1 to " + std::to_string(total) +
                " samples and a step of 1 or more, found " + std::to_string(length) + " and " +
                std::to_string(step));
  }
  const int64_t frames = (total - length) / step + 1;
  checked_list_size({frames, length}, "the frames");
  std::vector<int64_t> samples;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < length; ++i) samples.push_back(frame * step + i);
  }
  const ValueId indices = n.constant(make_literal(DType::kInt64, {frames, length}, samples));
  Complex parts = split_parts(n, n.gather(x, indices, 1), {0, 1, 2});
  if (n.has_input(2)) {
    const ValueId window = n.input(2);
    parts.real = n.mul(parts.real, window);
    if (parts.imaginary != kNone) parts.imaginary = n.mul(parts.imaginary, window);
  }
  const Transform transform{length, false, n.integer("onesided", 1) != 0};
  return {join_parts(n, transformed(n, parts, transform), {0, 1, 2}, false)};
}

// Frequencies of `count` points at equal distances on the mel scale, as bins of a transform.
std::vector<int64_t> mel_points(int64_t count, int64_t length, double rate, double low,
                                double high) {
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; };
  const double step = (mel(high) - mel(low)) / static_cast<double>(count);
  std::vector<int64_t> points;
  for (int64_t i = 0; i < count; ++i) {
    const double value = mel(low) + static_cast<double>(i) * step;
    const double hertz = 700 * std::expm1(value / 2595 * std::numbers::ln10);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    points.push_back(std::min(length / 2, static_cast<int64_t>(bin)));
  }
  return points;
}

// Triangles from point to point over the bins of a spectrum: [bins, filters], a constant.
ValueIds lower_mel_weight_matrix(Lowering& n) {
  const int64_t filters = n.integer_input(0, "the number of filters");
  const int64_t length = n.integer_input(1, "the length of the transform");
  const int64_t rate = n.integer_input(2, "the sample rate");
  const double low = n.real_input(3, "the lower edge"), high = n.real_input(4, "the upper edge");
  checked_factor(filters, 1, "the number of filters");
  checked_factor(length, 1, "the length of the transform");
  if (rate < 1 || !(low >= 0 && low <= high && high <= static_cast<double>(rate) / 2)) {
    throw Error("expected edges with 0 <= lower <= upper <= half of the sample rate, found " +
                std::to_string(low) + ", " + std::to_string(high) + " and a rate of " +
                std::to_string(rate));
  }
  const int64_t bins = length / 2 + 1;
  std::vector<double> values(static_cast<size_t>(checked_list_size({bins, filters}, "the matrix")));
  const auto at = [&](int64_t bin, int64_t filter) -> double& {
    return values[static_cast<size_t>(bin * filters + filter)];
  };
  const std::vector<int64_t> points =
      mel_points(filters + 2, length, static_cast<double>(rate), low, high);
  for (int64_t i = 0; i < filters; ++i) {
    const auto k = static_cast<size_t>(i);
    const auto left = static_cast<double>(points[k]), centre = static_cast<double>(points[k + 1]);
    const auto right = static_cast<double>(points[k + 2]);
    for (int64_t j = points[k]; j < points[k + 1]; ++j) {
      at(j, i) = (static_cast<double>(j) - left) / (centre - left);
    }
    at(points[k + 1], i) = 1;
    for (int64_t j = points[k + 1] + 1; j < points[k + 2]; ++j) {
      at(j, i) = (right - static_cast<double>(j)) / (right - centre);
    }
  }
  const int64_t code = n.integer("output_datatype", onnx::TensorProto::FLOAT);
  const std::optional<DType> dtype = dtype_from_onnx(static_cast<int32_t>(code));
  if (!dtype) throw Error("tensors of type " + std::to_string(code) + " are not supported");
  return {n.constant(make_literal(*dtype, {bins, filters}, values))};
}

const std::vector<Rule> kRules = {
    {"", "DFT", {17, 20}, lower_dft},
    {"", "STFT", {17}, lower_stft},
    {"", "MelWeightMatrix", {17}, lower_mel_weight_matrix},
};

}  // namespace

std::span<const Rule> signal_rules() { return kRules; }

}  // namespace sgtc
