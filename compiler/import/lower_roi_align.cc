// RoiAlign: averages or maxima of samples in regions of an input.
//
// A region is cut into bins of sampling_ratio² samples each, and a sample is a weighted sum of the
// four cells around it. Its cells and weights along one dimension do not depend on the other one,
// so they are computed per dimension; cells are gathered from [N·H·W, C], whole channels at a time.
// Gradients reach the input and the regions.
#include <array>

#include "import/checks.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// The cells around the samples of each region along one dimension, and their weights: [R, samples].
struct Samples {
  std::array<ValueId, 2> cells;  // int64
  std::array<ValueId, 2> weights;
};

class RoiAlign {
 public:
  explicit RoiAlign(Lowering& n)
      : n_(n),
        x_(n.input(0)),
        regions_(n.input(1)),
        batch_(n.input(2)),
        bins_{checked_factor(n.integer("output_height", 1), 1, "attribute \"output_height\""),
              checked_factor(n.integer("output_width", 1), 1, "attribute \"output_width\"")},
        per_bin_(n.integer("sampling_ratio", 0)),
        scale_(n.real("spatial_scale", 1)),
        maximum_(choice("mode", "avg", "max")),
        half_pixel_(n.since() >= 16 &&
                    !choice("coordinate_transformation_mode", "half_pixel", "output_half_pixel")) {
    const Shape x = n.shape(x_), regions = n.shape(regions_);
    const bool fits = x.size() == 4 && x[2] > 0 && x[3] > 0 && regions.size() == 2 &&
                      regions[1] == 4 && n.shape(batch_) == Shape{regions[0]};
    if (!fits) {
      throw Error(
          "expected an input [N, C, H, W], regions [R, 4] and their batch indices [R], "
          "found " +
          to_string(x) + ", " + to_string(regions) + " and " + to_string(n.shape(batch_)));
    }
    if (per_bin_ < 1) {
      throw Error("attribute \"sampling_ratio\": expected 1 or more, found " +
                  std::to_string(per_bin_) +
                  "; a number of samples that depends on the region is not supported");
    }
    checked_factor(per_bin_, 1, "attribute \"sampling_ratio\"");
  }

  ValueId lower() {
    const Shape x = n_.shape(x_);
    const int64_t regions = n_.shape(regions_)[0], channels = x[1];
    data_ = n_.reshape(n_.transpose(x_, {0, 2, 3, 1}), {x[0] * x[2] * x[3], channels});
    const Samples rows = samples(1, x[2], bins_[0]), columns = samples(0, x[3], bins_[1]);
    const ValueId first = n_.unsqueeze(
        n_.mul_scalar(n_.cast(batch_, DType::kInt64), static_cast<double>(x[2] * x[3])), {1, 2});
    ValueId result = kNone;
    for (size_t k = 0; k < 4; ++k) {
      const ValueId row = n_.unsqueeze(rows.cells[k / 2], {2});
      const ValueId column = n_.unsqueeze(columns.cells[k % 2], {1});
      const ValueId place = n_.add(n_.mul_scalar(row, static_cast<double>(x[3])), column);
      const ValueId weight = n_.mul(n_.unsqueeze(rows.weights[k / 2], {2, 3}),
                                    n_.unsqueeze(columns.weights[k % 2], {1, 3}));
      const ValueId part = n_.mul(n_.gather(data_, n_.add(first, place), 0), weight);
      result = result == kNone ? part : n_.add(maximum_ ? Op::kMax : Op::kAdd, {result, part});
    }
    result = n_.reshape(result, {regions, bins_[0], per_bin_, bins_[1], per_bin_, channels});
    result = maximum_ ? n_.reduce(Op::kReduceMax, result, {2, 4}) : n_.mean(result, {2, 4});
    return n_.transpose(n_.reshape(result, {regions, bins_[0], bins_[1], channels}), {0, 3, 1, 2});
  }

 private:
  // Whether the attribute is the second of its two values.
  bool choice(const std::string& name, const std::string& first, const std::string& second) {
    const std::string found = n_.text(name, first);
    if (found == first || found == second) return found == second;
    throw Error("attribute \"" + name + "\": expected " + first + " or " + second + ", found \"" +
                found + "\"");
  }

  ValueId clamp(ValueId x, double low, double high) {
    return n_.add(Op::kMin, {n_.add(Op::kMax, {x, n_.scalar(n_.dtype(x), low)}),
                             n_.scalar(n_.dtype(x), high)});
  }

  ValueId bound(int64_t column) {
    return n_.add_scalar(n_.mul_scalar(n_.slice(regions_, 1, column, 1), scale_),
                         half_pixel_ ? -0.5 : 0);
  }

  // Where samples lie in a region, as parts of its extent: [1, samples].
  ValueId fractions(int64_t bins) {
    const int64_t count = checked_list_size({bins, per_bin_}, "the samples");
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k) {
      values.push_back((static_cast<double>(k) + 0.5) / static_cast<double>(count));
    }
    return n_.constant(make_literal(n_.dtype(regions_), {1, count}, values));
  }

  // Along the dimension of `size` whose lower bound is the regions' `column`. A sample more than a
  // cell outside counts nothing.
  Samples samples(int64_t column, int64_t size, int64_t bins) {
    const ValueId start = bound(column);
    ValueId extent = n_.sub(bound(column + 2), start);
    if (!half_pixel_) extent = n_.add(Op::kMax, {extent, n_.scalar(n_.dtype(extent), 1)});
    const ValueId place = n_.add(start, n_.mul(extent, fractions(bins)));
    const auto scalar = [&](double value) { return n_.scalar(n_.dtype(place), value); };
    const auto length = static_cast<double>(size);
    const ValueId counts =
        n_.add(Op::kLogicalAnd, {n_.add(Op::kGreaterEqual, {place, scalar(-1)}),
                                 n_.add(Op::kLessEqual, {place, scalar(length)})});
    const ValueId inside = clamp(place, 0, length - 1);
    const ValueId low = n_.add(Op::kFloor, {inside}), rest = n_.sub(inside, low);
    const ValueId high = clamp(n_.add_scalar(low, 1), 0, length - 1);
    Samples result;
    result.cells = {n_.cast(low, DType::kInt64), n_.cast(high, DType::kInt64)};
    result.weights = {n_.where(counts, n_.sub(scalar(1), rest), scalar(0)),
                      n_.where(counts, rest, scalar(0))};
    return result;
  }

  Lowering& n_;
  ValueId x_, regions_, batch_;
  std::array<int64_t, 2> bins_;
  int64_t per_bin_;
  double scale_;
  bool maximum_, half_pixel_;
  ValueId data_ = kNone;  // [N·H·W, C]
};

ValueIds lower_roi_align(Lowering& n) { return {RoiAlign(n).lower()}; }

const std::vector<Rule> kRules = {
    {"", "RoiAlign", {10, 16, 22}, lower_roi_align},
};

}  // namespace

std::span<const Rule> roi_align_rules() { return kRules; }

}  // namespace sgtc
