// GridSample: reads an input at positions that are data.
//
// A result is a weighted sum of a few cells around its position, per dimension one (nearest), two
// (linear) or four (cubic). Cells are gathered from [N, cells, C], whole channels at a time;
// weights are elementwise in the position, so gradients reach the grid as well as the input.
// Positions and cells beyond the border are handled as the padding says, both, since a cell beside
// a position inside may lie outside.
#include <cmath>

#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kCubic = -0.75;  // the coefficient of Keys' convolution

// One cell per position along a dimension and its weight, both [N, outputs, 1].
struct Cell {
  ValueId index;   // float, whole numbers in the input's range
  ValueId weight;  // kNone: 1
};

class GridSample {
 public:
  explicit GridSample(Lowering& n)
      : n_(n),
        mode_(n.text("mode", "linear")),
        padding_(n.text("padding_mode", "zeros")),
        aligned_(n.integer("align_corners", 0) != 0),
        x_(n.input(0)),
        grid_(n.input(1)) {
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ == "bicubic") mode_ = "cubic";
    if (mode_ != "linear" && mode_ != "nearest" && mode_ != "cubic") {
      throw Error("attribute \"mode\": expected linear, nearest or cubic, found \"" + mode_ + "\"");
    }
    if (padding_ != "zeros" && padding_ != "border" && padding_ != "reflection") {
      throw Error("attribute \"padding_mode\": expected zeros, border or reflection, found \"" +
                  padding_ + "\"");
    }
    const Shape x = n.shape(x_), grid = n.shape(grid_);
    const bool fits = x.size() >= 3 && grid.size() == x.size() && grid[0] == x[0] &&
                      grid.back() == static_cast<int64_t>(x.size()) - 2;
    if (!fits) {
      throw Error("expected an input [N, C, …] and a grid [N, …, dimensions], found " +
                  to_string(x) + " and " + to_string(grid));
    }
  }

  ValueId lower() {
    const Shape x = n_.shape(x_), grid = n_.shape(grid_);
    const int64_t outputs = element_count(grid) / std::max<int64_t>(1, grid[0] * grid.back());
    const int64_t cells = element_count(x) / std::max<int64_t>(1, x[0] * x[1]);
    data_ = n_.transpose(n_.reshape(x_, {x[0], x[1], cells}), {0, 2, 1});
    const ValueId flat = n_.reshape(grid_, {grid[0], outputs, grid.back()});
    std::vector<std::vector<Cell>> axes;
    for (int64_t d = 0; d < grid.back(); ++d) {
      // The grid names the last dimension first.
      const ValueId place = n_.slice(flat, 2, grid.back() - 1 - d, 1);
      axes.push_back(cells_of(n_.cast(place, n_.dtype(x_)), x[static_cast<size_t>(d) + 2]));
    }
    const ValueId sum = sum_of_cells(axes, {x.begin() + 2, x.end()});
    Shape target{x[0], x[1]};
    target.insert(target.end(), grid.begin() + 1, grid.end() - 1);
    return n_.reshape(n_.transpose(sum, {0, 2, 1}), target);
  }

 private:
  ValueId scalar(double value) { return n_.scalar(n_.dtype(x_), value); }

  // From [-1, 1] to cells of a dimension of `size`.
  ValueId position(ValueId place, int64_t size) {
    const auto length = static_cast<double>(size);
    const double factor = aligned_ ? (length - 1) / 2 : length / 2;
    return n_.add_scalar(n_.mul_scalar(place, factor), (length - 1) / 2);
  }

  ValueId clamp(ValueId x, double low, double high) {
    return n_.add(Op::kMin, {n_.add(Op::kMax, {x, scalar(low)}), scalar(high)});
  }

  // Mirrors at the border as often as needed.
  ValueId reflect(ValueId x, int64_t size) {
    const double low = aligned_ ? 0 : -0.5;
    const double range = static_cast<double>(size) - (aligned_ ? 1 : 0);
    if (range == 0) return n_.mul_scalar(x, 0);
    const ValueId distance = n_.add(Op::kAbs, {n_.add_scalar(x, -low)});
    const ValueId turns = n_.add(Op::kFloor, {n_.mul_scalar(distance, 1 / range)});
    const ValueId rest = n_.sub(distance, n_.mul_scalar(turns, range));
    const ValueId odd = n_.add(Op::kFmod, {turns, scalar(2)});
    const ValueId forward = n_.add(Op::kEqual, {odd, scalar(0)});
    const ValueId backward = n_.sub(scalar(range), rest);
    return n_.add_scalar(n_.where(forward, rest, backward), low);
  }

  ValueId inside(ValueId x, int64_t size) {
    if (padding_ == "reflection") x = reflect(x, size);
    return clamp(x, 0, static_cast<double>(size - 1));
  }

  std::vector<Cell> cells_of(ValueId place, int64_t size) {
    ValueId x = position(place, size);
    if (mode_ == "nearest") return {cell(n_.add(Op::kRound, {x}), kNone, size)};
    if (mode_ == "linear" && padding_ != "zeros") x = inside(x, size);
    if (mode_ == "cubic" && padding_ == "reflection") x = reflect(x, size);
    const ValueId first = n_.add(Op::kFloor, {x}), t = n_.sub(x, first);
    if (mode_ == "linear") {
      return {cell(first, n_.sub(scalar(1), t), size), cell(n_.add_scalar(first, 1), t, size)};
    }
    const ValueId rest = n_.sub(scalar(1), t);
    return {cell(n_.add_scalar(first, -1), far(n_.add_scalar(t, 1)), size),
            cell(first, near(t), size), cell(n_.add_scalar(first, 1), near(rest), size),
            cell(n_.add_scalar(first, 2), far(n_.add_scalar(rest, 1)), size)};
  }

  // Keys' weights for cells at a distance d below 1 and from 1 to 2.
  ValueId near(ValueId d) {
    const ValueId line = n_.add_scalar(n_.mul_scalar(d, kCubic + 2), -(kCubic + 3));
    return n_.add_scalar(n_.mul(n_.mul(line, d), d), 1);
  }
  ValueId far(ValueId d) {
    const ValueId line = n_.add_scalar(n_.mul_scalar(d, kCubic), -5 * kCubic);
    const ValueId square = n_.add_scalar(n_.mul(line, d), 8 * kCubic);
    return n_.add_scalar(n_.mul(square, d), -4 * kCubic);
  }

  // A cell beyond the border counts nothing, or stands for one inside.
  Cell cell(ValueId index, ValueId weight, int64_t size) {
    const ValueId index_inside = inside(index, size);
    if (padding_ == "zeros") {
      const ValueId counts = n_.add(Op::kEqual, {index, index_inside});
      weight = n_.where(counts, weight == kNone ? scalar(1) : weight, scalar(0));
    }
    return {n_.add(Op::kRound, {index_inside}), weight};
  }

  // Adds up all combinations of one cell per dimension.
  ValueId sum_of_cells(const std::vector<std::vector<Cell>>& axes, const Shape& sizes) {
    const Shape strides = row_major_strides(sizes);
    std::vector<size_t> choice(axes.size(), 0);
    ValueId sum = kNone;
    while (true) {
      ValueId index = kNone, weight = kNone;
      for (size_t d = 0; d < axes.size(); ++d) {
        const Cell& cell = axes[d][choice[d]];
        const ValueId cells = n_.cast(cell.index, DType::kInt64);
        const ValueId offset = n_.mul_scalar(cells, static_cast<double>(strides[d]));
        index = index == kNone ? offset : n_.add(index, offset);
        if (cell.weight == kNone) continue;
        weight = weight == kNone ? cell.weight : n_.mul(weight, cell.weight);
      }
      ValueId part = n_.add(Op::kGatherNd, {data_, index}, {{"batch_dims", int64_t{1}}});
      if (weight != kNone) part = n_.mul(part, weight);
      sum = sum == kNone ? part : n_.add(sum, part);
      size_t d = 0;
      while (d < axes.size() && ++choice[d] == axes[d].size()) choice[d++] = 0;
      if (d == axes.size()) return sum;
    }
  }

  Lowering& n_;
  std::string mode_, padding_;
  bool aligned_;
  ValueId x_, grid_;
  ValueId data_ = kNone;  // [N, cells, C]
};

ValueIds lower_grid_sample(Lowering& n) { return {GridSample(n).lower()}; }

const std::vector<Rule> kRules = {
    {"", "GridSample", {16, 20, 22}, lower_grid_sample},
};

}  // namespace

std::span<const Rule> grid_sample_rules() { return kRules; }

}  // namespace sgtc
