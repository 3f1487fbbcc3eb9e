// Resize by nearest, linear or cubic interpolation.
//
// Interpolation is separable: along each resized axis an output position is a weighted sum of a
// few input positions (taps), which are constants. Each tap is one gather. With align_corners the
// output's size is the integer one, as in PyTorch; ONNX's reference takes the unrounded one.
// Downsampling with antialias stretches the filter over as many cells as an output covers.
#include <algorithm>
#include <cmath>

#include "import/checks.h"
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
  double roi_start = 0, roi_end = 1;  // of tf_crop_and_resize, in units of the input
};

// The position in the input, in units of its cells, that output position `i` shows.
double source_position(const std::string& mode, const AxisResize& a, int64_t i) {
  const auto x = static_cast<double>(i);
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") {
    if (a.output == 1) return 0;
    return x * static_cast<double>(a.input - 1) / static_cast<double>(a.output - 1);
  }
  if (mode == "tf_crop_and_resize") {
    const auto last = static_cast<double>(a.input - 1);
    if (a.output == 1) return (a.roi_start + a.roi_end) / 2 * last;
    return a.roi_start * last +
           x * (a.roi_end - a.roi_start) * last / static_cast<double>(a.output - 1);
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

// Keys' cubic convolution of a cell at distance `d`.
double cubic_weight(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
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
        exclude_outside_(n.integer("exclude_outside", 0) != 0),
        antialias_(n.integer("antialias", 0) != 0) {
    if (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic") {
      throw Error("attribute \"mode\": expected nearest, linear or cubic, found \"" + mode_ + "\"");
    }
  }

  Taps taps(const AxisResize& axis) const {
    checked_list_size({axis.output, cells_per_output(axis)}, "the positions of a resized axis");
    Taps taps;
    for (int64_t i = 0; i < axis.output; ++i) {
      const double x = source_position(coordinates_, axis, i);
      double first = 0;
      std::vector<double> weights = weights_at(x, axis.scale, &first);
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
  double stretch_of(double scale) const { return antialias_ ? std::min(scale, 1.0) : 1; }

  // How many cells of the input a filter covers on each side.
  double reach_of(double scale) const { return (mode_ == "linear" ? 1 : 2) / stretch_of(scale); }

  int64_t cells_per_output(const AxisResize& axis) const {
    if (mode_ == "nearest") return 1;
    return static_cast<int64_t>(std::min(2 * reach_of(axis.scale), 0x1p40));
  }

  std::vector<double> weights_at(double x, double scale, double* first) const {
    if (mode_ == "nearest") {
      *first = nearest_of(nearest_, x);
      return {1};
    }
    const double cell = std::floor(x), t = x - cell;
    const double stretch = stretch_of(scale);
    const double start = std::floor(-reach_of(scale)) + 1;
    *first = cell + start;
    std::vector<double> weights;
    for (double k = start; k < 2 - start; ++k) weights.push_back(weight((k - t) * stretch));
    return weights;
  }

  double weight(double distance) const {
    if (mode_ == "cubic") return cubic_weight(distance, cubic_);
    return std::max(0.0, 1 - std::abs(distance));
  }

  // Weights add up to 1; with exclude_outside, those of the cells in the input.
  void normalize(std::vector<double>& weights, double first, int64_t size) const {
    double sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const double cell = first + static_cast<double>(k);
      const bool outside = cell < 0 || cell >= static_cast<double>(size);
      if (exclude_outside_ && outside && mode_ != "nearest") weights[k] = 0;
      sum += weights[k];
    }
    for (double& weight : weights) weight /= sum;
  }

  std::string mode_, coordinates_, nearest_;
  double cubic_;
  bool exclude_outside_, antialias_;
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

// One number per resized axis from input `index`.
std::vector<double> per_axis(Lowering& n, int index, const std::string& what, size_t count) {
  const LiteralPtr values = n.literal_input(index, what);
  if (values->element_count() != static_cast<int64_t>(count)) {
    throw Error(what + ": expected " + std::to_string(count) + " numbers, found " +
                std::to_string(values->element_count()));
  }
  std::vector<double> result;
  for (int64_t i = 0; i < values->element_count(); ++i) result.push_back(values->as_double(i));
  return result;
}

int64_t whole_size(double size) {
  if (size >= 0 && size <= static_cast<double>(kMaxListed)) return static_cast<int64_t>(size);
  throw Error("a resized axis: expected 0 to " + std::to_string(kMaxListed) + " elements, found " +
              std::to_string(size));
}

// One scale for all axes, so that the output fits into the sizes or covers them.
void keep_aspect_ratio(const std::string& policy, std::vector<AxisResize>& resizes) {
  if (policy != "not_larger" && policy != "not_smaller") {
    throw Error(
        "attribute \"keep_aspect_ratio_policy\": expected stretch, not_larger or "
        "not_smaller, found \"" +
        policy + "\"");
  }
  double scale = resizes.front().scale;
  for (const AxisResize& axis : resizes) {
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  }
  for (AxisResize& axis : resizes) {
    axis.scale = scale;
    axis.output = whole_size(std::floor(scale * static_cast<double>(axis.input) + 0.5));
  }
}

// Sizes and scales of the resized axes in the order of `axes`.
std::vector<AxisResize> resizes_of(Lowering& n, const std::vector<int64_t>& axes) {
  const int scales_at = is_old(n) ? 1 : 2;
  const bool by_scale = given(n, scales_at);
  if (!by_scale && !given(n, 3)) throw Error("neither scales nor sizes are given");
  const std::vector<double> values = by_scale ? per_axis(n, scales_at, "the scales", axes.size())
                                              : per_axis(n, 3, "the sizes", axes.size());
  std::vector<double> roi;
  if (n.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    roi = per_axis(n, 1, "the region of interest", 2 * axes.size());
  }
  std::vector<AxisResize> resizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisResize axis;
    axis.input = n.input_shape(0)[static_cast<size_t>(axes[i])];
    axis.output =
        whole_size(by_scale ? std::floor(static_cast<double>(axis.input) * values[i]) : values[i]);
    axis.scale = by_scale ? values[i] : values[i] / static_cast<double>(axis.input);
    if (!roi.empty()) {
      axis.roi_start = roi[i];
      axis.roi_end = roi[i + axes.size()];
    }
    if (!(axis.scale > 0) && axis.input > 0) {
      throw Error("scales and sizes must be positive, found " + std::to_string(values[i]));
    }
    if (axis.input == 0 && axis.output > 0) {
      throw Error("an axis without elements cannot be resized to " + std::to_string(axis.output));
    }
    resizes.push_back(axis);
  }
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && !by_scale) keep_aspect_ratio(policy, resizes);
  return resizes;
}

// tf_crop_and_resize: positions outside the input show a constant.
ValueId extrapolate(Lowering& n, ValueId x, int64_t axis, const AxisResize& resize) {
  std::vector<int64_t> outside;
  for (int64_t i = 0; i < resize.output; ++i) {
    const double at = source_position("tf_crop_and_resize", resize, i);
    outside.push_back(at < 0 || at > static_cast<double>(resize.input - 1) ? 1 : 0);
  }
  Shape line(n.shape(x).size(), 1);
  line[static_cast<size_t>(axis)] = resize.output;
  return n.where(n.constant(make_literal(DType::kBool, line, outside)),
                 n.scalar(n.dtype(x), n.real("extrapolation_value", 0)), x);
}

ValueIds lower_resize(Lowering& n) {
  ValueId x = n.input(0);
  const std::vector<int64_t> given_axes = n.integers("axes", all_axes(n.rank(x)));
  std::vector<int64_t> axes;
  for (int64_t axis : given_axes) axes.push_back(normalized_axis(axis, n.rank(x)));
  const Interpolation interpolation(n);
  const std::vector<AxisResize> resizes = resizes_of(n, axes);
  const bool crops = n.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool same = resizes[i].output == resizes[i].input && resizes[i].scale == 1;
    if (same && !crops) continue;
    if (resizes[i].output == 0) {
      x = n.slice(x, axes[i], 0, 0);
      continue;
    }
    x = interpolate(n, x, axes[i], interpolation.taps(resizes[i]));
    if (crops) x = extrapolate(n, x, axes[i], resizes[i]);
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
