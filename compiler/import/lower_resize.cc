// Resize by nearest, linear or cubic interpolation.
//
// Interpolation is separable: along each resized axis an output position is a weighted sum of a
// few input positions (taps), which are constants. Each tap is one gather. With align_corners the
// output's size is the integer one, as in PyTorch; ONNX's reference takes the unrounded one.
// Left out: antialias, tf_crop_and_resize, keep_aspect_ratio_policy.
#include <algorithm>
#include <cmath>

#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

struct Taps {
  std::vector<std::vector<int64_t>> positions;  // [tap][output]
  std::vector<std::vector<double>> weights;
};

struct AxisResize {
  int64_t input = 0;
  int64_t output = 0;
  double scale = 1;
};

// The position in the input, in units of its cells, that output position `i` shows.
double source_position(const std::string& mode, const AxisResize& a, int64_t i) {
  const auto x = static_cast<double>(i);
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") {
    if (a.output == 1) return 0;
    return x * static_cast<double>(a.input - 1) / static_cast<double>(a.output - 1);
  }
  if (mode == "pytorch_half_pixel" && a.output == 1) return 0;
  if (mode == "half_pixel" || mode == "pytorch_half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (mode == "half_pixel_symmetric") {
    const double exact = a.scale * static_cast<double>(a.input);
    const double offset =
        static_cast<double>(a.input) / 2 * (1 - static_cast<double>(a.output) / exact);
    return offset + (x + 0.5) / a.scale - 0.5;
  }
  throw Error("coordinate_transformation_mode \"" + mode + "\" is not supported");
}

double nearest_of(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  throw Error("nearest_mode \"" + mode + "\" is not supported");
}

// Weights of the cells -1, 0, 1, 2 around the fraction t (Keys' cubic convolution).
std::vector<double> cubic_weights(double t, double a) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// Resize-10 and Upsample: scales are input 1, positions are scaled from the corner.
bool is_old(Lowering& n) { return n.since() <= 10; }

class Interpolation {
 public:
  explicit Interpolation(Lowering& n)
      : mode_(n.text("mode", "nearest")),
        coordinates_(
            n.text("coordinate_transformation_mode", is_old(n) ? "asymmetric" : "half_pixel")),
        nearest_(n.text("nearest_mode", is_old(n) ? "floor" : "round_prefer_floor")),
        cubic_(n.real("cubic_coeff_a", -0.75)),
        exclude_outside_(n.integer("exclude_outside", 0) != 0) {
    if (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic") {
      throw Error("attribute \"mode\": expected nearest, linear or cubic, found \"" + mode_ + "\"");
    }
    if (n.integer("antialias", 0) != 0) throw Error("antialias=1 is not supported");
  }

  Taps taps(const AxisResize& axis) const {
    Taps taps;
    for (int64_t i = 0; i < axis.output; ++i) {
      const double x = source_position(coordinates_, axis, i);
      double first = 0;
      std::vector<double> weights = weights_at(x, &first);
      normalize(weights, first, axis.input);
      taps.positions.resize(weights.size());
      taps.weights.resize(weights.size());
      for (size_t k = 0; k < weights.size(); ++k) {
        const int64_t cell = static_cast<int64_t>(first) + static_cast<int64_t>(k);
        taps.positions[k].push_back(std::clamp<int64_t>(cell, 0, axis.input - 1));
        taps.weights[k].push_back(weights[k]);
      }
    }
    return taps;
  }

 private:
  std::vector<double> weights_at(double x, double* first) const {
    if (mode_ == "nearest") {
      *first = nearest_of(nearest_, x);
      return {1};
    }
    const double cell = std::floor(x), t = x - cell;
    *first = mode_ == "linear" ? cell : cell - 1;
    if (mode_ == "linear") return {1 - t, t};
    return cubic_weights(t, cubic_);
  }

  // exclude_outside: cells outside the input get no weight.
  void normalize(std::vector<double>& weights, double first, int64_t size) const {
    if (!exclude_outside_ || mode_ != "cubic") return;
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const double cell = first + static_cast<double>(k);
      if (cell < 0 || cell >= static_cast<double>(size)) weights[k] = 0;
      sum += weights[k];
    }
    for (double& weight : weights) weight /= sum;
  }

  std::string mode_, coordinates_, nearest_;
  double cubic_;
  bool exclude_outside_;
};

ValueId interpolate(Lowering& n, ValueId x, int64_t axis, const Taps& taps) {
  const DType dtype = n.dtype(x);
  if (taps.positions.size() == 1) return n.gather(x, n.constant_integers(taps.positions[0]), axis);
  Shape line(n.shape(x).size(), 1);
  line[static_cast<size_t>(axis)] = static_cast<int64_t>(taps.positions[0].size());
  ValueId sum = kNone;
  for (size_t k = 0; k < taps.positions.size(); ++k) {
    const ValueId weights = n.constant(make_literal(dtype, line, taps.weights[k]));
    const ValueId part = n.mul(n.gather(x, n.constant_integers(taps.positions[k]), axis), weights);
    sum = sum == kNone ? part : n.add(sum, part);
  }
  return sum;
}

bool given(Lowering& n, int index) {
  return n.has_input(index) && element_count(n.input_shape(index)) > 0;
}

// Sizes and scales of the resized axes in the order of `axes`.
std::vector<AxisResize> resizes_of(Lowering& n, const std::vector<int64_t>& axes) {
  const int scales_at = is_old(n) ? 1 : 2;
  const bool by_scale = given(n, scales_at);
  if (!by_scale && !given(n, 3)) throw Error("neither scales nor sizes are given");
  const LiteralPtr values =
      by_scale ? n.literal_input(scales_at, "the scales") : n.literal_input(3, "the sizes");
  if (values->element_count() != static_cast<int64_t>(axes.size())) {
    throw Error("expected " + std::to_string(axes.size()) + " scales or sizes, found " +
                std::to_string(values->element_count()));
  }
  std::vector<AxisResize> resizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisResize axis;
    axis.input = n.input_shape(0)[static_cast<size_t>(axes[i])];
    const double value = values->as_double(static_cast<int64_t>(i));
    axis.output = static_cast<int64_t>(
        by_scale ? std::floor(static_cast<double>(axis.input) * value) : value);
    axis.scale = by_scale ? value : value / static_cast<double>(axis.input);
    resizes.push_back(axis);
  }
  return resizes;
}

ValueIds lower_resize(Lowering& n) {
  ValueId x = n.input(0);
  if (n.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    throw Error("keep_aspect_ratio_policy: only stretch is supported");
  }
  const std::vector<int64_t> given_axes = n.integers("axes", all_axes(n.rank(x)));
  std::vector<int64_t> axes;
  for (int64_t axis : given_axes) axes.push_back(normalized_axis(axis, n.rank(x)));
  const Interpolation interpolation(n);
  const std::vector<AxisResize> resizes = resizes_of(n, axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (resizes[i].output == resizes[i].input && resizes[i].scale == 1) continue;
    x = interpolate(n, x, axes[i], interpolation.taps(resizes[i]));
  }
  return {x};
}

const std::vector<Rule> kRules = {
    {"", "Resize", {10, 11, 13, 18, 19}, lower_resize},
    {"", "Upsample", {9}, lower_resize},
};

}  // namespace

std::span<const Rule> resize_rules() { return kRules; }

}  // namespace sgtc
