// MaxRoiPool: maxima of bins of regions of an input.
//
// A bin holds whole cells, from floor(k · extent / bins) on, with bounds computed in the type of
// the regions, as Caffe and ONNX Runtime do. Which cells of one dimension are in a bin does not
// depend on the other, so the maximum is taken along the columns and then along the rows; of
// several equal ones the first in row-major order gets the gradient. A bin without cells is 0.
#include <cmath>

#include "import/checks.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class MaxRoiPool {
 public:
  explicit MaxRoiPool(Lowering& n)
      : n_(n),
        x_(n.input(0)),
        regions_(n.input(1)),
        bins_(n.integers("pooled_shape")),
        scale_(n.real("spatial_scale", 1)) {
    const Shape x = n.shape(x_), regions = n.shape(regions_);
    if (x.size() != 4 || regions.size() != 2 || regions[1] != 5) {
      throw Error("expected an input [N, C, H, W] and regions [R, 5], found " + to_string(x) +
                  " and " + to_string(regions));
    }
    if (bins_.size() != 2) {
      throw Error("attribute \"pooled_shape\": expected two sizes, found " + to_string(bins_));
    }
    for (const int64_t bins : bins_) checked_factor(bins, 1, "attribute \"pooled_shape\"");
  }

  ValueId lower() {
    const Shape x = n_.shape(x_);
    const int64_t regions = n_.shape(regions_)[0], rows = bins_[0], columns = bins_[1];
    const ValueId batch = n_.cast(n_.reshape(column(0), {regions}), DType::kInt64);
    const ValueId lowest = n_.scalar(n_.dtype(x_), -INFINITY);
    // [R, C, H, 1, W] of which each bin of columns takes a part.
    ValueId best = n_.unsqueeze(n_.gather(x_, batch, 0), {3});
    const ValueId in_columns = n_.reshape(cells(1, x[3], columns), {regions, 1, 1, columns, x[3]});
    best = n_.reduce(Op::kReduceMax, n_.where(in_columns, best, lowest), {4});
    // [R, C, 1, H, columns]
    best = n_.reshape(best, {regions, x[1], 1, x[2], columns});
    const ValueId in_rows = n_.reshape(cells(2, x[2], rows), {regions, 1, rows, x[2], 1});
    best = n_.reduce(Op::kReduceMax, n_.where(in_rows, best, lowest), {3});
    best = n_.reshape(best, {regions, x[1], rows, columns});
    const ValueId filled =
        n_.add(Op::kLogicalAnd, {n_.reshape(any(in_rows, 3), {regions, 1, rows, 1}),
                                 n_.reshape(any(in_columns, 4), {regions, 1, 1, columns})});
    return n_.where(filled, best, n_.scalar(n_.dtype(x_), 0));
  }

 private:
  ValueId column(int64_t index) { return n_.slice(regions_, 1, index, 1); }

  ValueId any(ValueId mask, int64_t axis) {
    const ValueId count = n_.reduce(Op::kReduceMax, n_.cast(mask, DType::kInt32), {axis});
    return n_.cast(count, DType::kBool);
  }

  // A bound of the regions as a number of cells, halves away from zero: [R, 1].
  ValueId bound(int64_t index) {
    const ValueId place = n_.mul_scalar(column(index), scale_);
    const ValueId size = n_.add(Op::kFloor, {n_.add_scalar(n_.add(Op::kAbs, {place}), 0.5)});
    return n_.mul(n_.add(Op::kSign, {place}), size);
  }

  // Which cells of a dimension of `size`, whose lower bound is the regions' column `index`, each of
  // its bins holds: [R, bins, size].
  ValueId cells(int64_t index, int64_t size, int64_t bins) {
    const DType dtype = n_.dtype(regions_);
    const ValueId start = bound(index);
    const ValueId extent =
        n_.add(Op::kMax, {n_.add_scalar(n_.sub(bound(index + 2), start), 1), n_.scalar(dtype, 1)});
    const ValueId width = n_.div(extent, n_.scalar(dtype, static_cast<double>(bins)));
    const ValueId bin = n_.iota({1, bins}, 1, dtype), cell = n_.iota({1, 1, size}, 2, dtype);
    const ValueId low = n_.add(n_.add(Op::kFloor, {n_.mul(bin, width)}), start);
    const ValueId high = n_.add(n_.add(Op::kCeil, {n_.mul(n_.add_scalar(bin, 1), width)}), start);
    return n_.add(Op::kLogicalAnd, {n_.add(Op::kGreaterEqual, {cell, n_.unsqueeze(low, {2})}),
                                    n_.add(Op::kLess, {cell, n_.unsqueeze(high, {2})})});
  }

  Lowering& n_;
  ValueId x_, regions_;
  std::vector<int64_t> bins_;
  double scale_;
};

ValueIds lower_max_roi_pool(Lowering& n) { return {MaxRoiPool(n).lower()}; }

const std::vector<Rule> kRules = {
    {"", "MaxRoiPool", {1, 22}, lower_max_roi_pool},
};

}  // namespace

std::span<const Rule> roi_pool_rules() { return kRules; }

}  // namespace sgtc
