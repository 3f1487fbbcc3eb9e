// Operators that have no kernel: compositions that are right and differentiable, and far slower
// than a kernel would be. They are used only with --on-unsupported=fallback.
#include <algorithm>
#include <map>

#include "import/checks.h"
#include "import/window.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kMaxDeterminant = 10;

// Determinants of the first k rows and every set of k columns, by expansion along row k. Without
// divisions, so singular matrices have their gradients too; the price is 2^n·n products.
ValueIds lower_determinant(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  const int64_t rank = n.rank(x), size = shape.empty() ? 0 : shape.back();
  if (rank < 2 || shape[static_cast<size_t>(rank) - 2] != size || size < 1 ||
      size > kMaxDeterminant) {
    throw Error("expected square matrices of 1 to " + std::to_string(kMaxDeterminant) +
                " rows, found " + to_string(shape));
  }
  const auto element = [&](int64_t row, int64_t column) {
    const ValueId line = n.slice(x, rank - 2, row, 1);
    return n.squeeze(n.slice(line, rank - 1, column, 1), {rank - 2, rank - 1});
  };
  std::map<int64_t, ValueId> minors;  // by the set of columns
  for (int64_t column = 0; column < size; ++column)
    minors[int64_t{1} << column] = element(0, column);
  for (int64_t row = 1; row < size; ++row) {
    std::map<int64_t, ValueId> larger;
    for (const auto& [columns, minor] : minors) {
      for (int64_t column = 0; column < size; ++column) {
        if ((columns >> column & 1) != 0) continue;
        ValueId term = n.mul(element(row, column), minor);
        // The sign is that of the columns behind the new one, which it has to pass.
        if (__builtin_popcountll(static_cast<uint64_t>(columns >> column)) % 2 != 0) {
          term = n.neg(term);
        }
        const auto [found, is_new] = larger.emplace(columns | int64_t{1} << column, term);
        if (!is_new) found->second = n.add(found->second, term);
      }
    }
    minors = std::move(larger);
  }
  return {minors.begin()->second};
}

// A convolution that reads beside its cells: each cell of the kernel gathers its inputs,
// bilinearly, and the results are one matrix product.
class DeformableConvolution {
 public:
  explicit DeformableConvolution(Lowering& n)
      : n_(n), x_(n.input(0)), w_(n.input(1)), offset_(n.input(2)) {
    const Shape x = n.shape(x_), w = n.shape(w_);
    if (x.size() != 4 || w.size() != 4) {
      throw Error("expected [N, C, H, W] and a weight of rank 4, found " + to_string(x) + " and " +
                  to_string(w));
    }
    window_ = window_of(n, spatial_sizes(w), spatial_sizes(x));
    groups_ = n.integer("group", 1);
    offset_groups_ = n.integer("offset_group", 1);
    checked_factor(groups_, 1, "attribute \"group\"");
    checked_factor(offset_groups_, 1, "attribute \"offset_group\"");
    for (size_t i = 0; i < 2; ++i) {
      if (x[i + 2] + window_.padding(i) < window_.span(i)) {
        throw Error("the window is larger than the padded input " + to_string(x));
      }
      output_.push_back((x[i + 2] + window_.padding(i) - window_.span(i)) / window_.strides[i] + 1);
    }
    taps_ = element_count(window_.kernel);
    checked_list_size({taps_, offset_groups_}, "the cells of the window");
    checked_list_size(output_, "the cells of the output");
    const Shape expected{x[0], 2 * taps_ * offset_groups_, output_[0], output_[1]};
    if (w[1] * groups_ != x[1] || w[0] % groups_ != 0 || x[1] % offset_groups_ != 0 ||
        n.shape(offset_) != expected) {
      throw Error("expected offsets of shape " + to_string(expected) + " and " +
                  std::to_string(w[1] * groups_) + " channels, found " +
                  to_string(n.shape(offset_)) + " and " + to_string(x));
    }
  }

  ValueId lower() {
    const Shape x = n_.shape(x_), w = n_.shape(w_);
    const int64_t cells = output_[0] * output_[1], per_group = w[1];
    // [N, C, taps, cells]
    ValueIds columns;
    for (int64_t tap = 0; tap < taps_; ++tap) columns.push_back(n_.unsqueeze(column(tap), {2}));
    const ValueId gathered =
        n_.reshape(n_.concat(columns, 2), {x[0], groups_, per_group * taps_, cells});
    const ValueId weight = n_.reshape(w_, {1, groups_, w[0] / groups_, per_group * taps_});
    ValueId y = n_.reshape(n_.matmul(weight, gathered), {x[0], w[0], output_[0], output_[1]});
    if (n_.has_input(3)) y = n_.add(y, n_.reshape(n_.input(3), {1, w[0], 1, 1}));
    return y;
  }

 private:
  // The inputs of one cell of the kernel, [N, C, cells].
  ValueId column(int64_t tap) {
    const Shape x = n_.shape(x_);
    const int64_t per_offset_group = x[1] / offset_groups_;
    ValueIds parts;
    for (int64_t group = 0; group < offset_groups_; ++group) {
      const ValueId channels = n_.slice(x_, 1, group * per_offset_group, per_offset_group);
      parts.push_back(sampled(channels, group, tap));
    }
    return n_.concat(parts, 1);
  }

  // Plane `index` of an input [N, planes, output…], as [N, cells, 1].
  ValueId plane(ValueId of, int64_t index) {
    const int64_t cells = output_[0] * output_[1];
    return n_.reshape(n_.slice(of, 1, index, 1), {n_.shape(of)[0], cells, 1});
  }

  // Where the kernel's cell lies without offset, along one dimension: [cells, 1].
  ValueId base(size_t axis, int64_t tap) {
    const int64_t along = axis == 0 ? tap / window_.kernel[1] : tap % window_.kernel[1];
    std::vector<double> places;
    for (int64_t cell = 0; cell < output_[0] * output_[1]; ++cell) {
      const int64_t at = axis == 0 ? cell / output_[1] : cell % output_[1];
      places.push_back(static_cast<double>(at * window_.strides[axis] - window_.pads[axis] +
                                           along * window_.dilations[axis]));
    }
    return n_.constant(make_literal(n_.dtype(x_), {output_[0] * output_[1], 1}, places));
  }

  ValueId sampled(ValueId channels, int64_t group, int64_t tap) {
    const Shape shape = n_.shape(channels);
    const int64_t first = (group * taps_ + tap) * 2;
    const ValueId data =
        n_.transpose(n_.reshape(channels, {shape[0], shape[1], shape[2] * shape[3]}), {0, 2, 1});
    const ValueId row = n_.add(plane(offset_, first), base(0, tap));
    const ValueId column = n_.add(plane(offset_, first + 1), base(1, tap));
    ValueId sum = kNone;
    for (int corner = 0; corner < 4; ++corner) {
      const Side y = side(row, shape[2], corner / 2), x = side(column, shape[3], corner % 2);
      const ValueId index = n_.add(n_.mul_scalar(y.index, static_cast<double>(shape[3])), x.index);
      const ValueId cell = n_.add(Op::kGatherNd, {data, index}, {{"batch_dims", int64_t{1}}});
      const ValueId part = n_.mul(cell, n_.mul(y.weight, x.weight));
      sum = sum == kNone ? part : n_.add(sum, part);
    }
    if (n_.has_input(4)) sum = n_.mul(sum, plane(n_.input(4), group * taps_ + tap));
    return n_.transpose(sum, {0, 2, 1});
  }

  struct Side {
    ValueId index, weight;
  };

  // The cell below or above a position and its weight, which is 0 outside the input.
  Side side(ValueId position, int64_t size, int upper) {
    const DType dtype = n_.dtype(position);
    const ValueId floor = n_.add(Op::kFloor, {position});
    const ValueId rest = n_.sub(position, floor);
    const ValueId cell = upper != 0 ? n_.add_scalar(floor, 1) : floor;
    const ValueId last = n_.scalar(dtype, static_cast<double>(size - 1));
    const ValueId inside = n_.add(Op::kMin, {n_.add(Op::kMax, {cell, n_.scalar(dtype, 0)}), last});
    const ValueId weight = upper != 0 ? rest : n_.sub(n_.scalar(dtype, 1), rest);
    const ValueId counts = n_.add(Op::kEqual, {cell, inside});
    return {n_.cast(inside, DType::kInt64), n_.where(counts, weight, n_.scalar(dtype, 0))};
  }

  Lowering& n_;
  ValueId x_, w_, offset_;
  Window window_;
  Shape output_;
  int64_t groups_ = 1, offset_groups_ = 1, taps_ = 1;
};

ValueIds lower_deformable_convolution(Lowering& n) { return {DeformableConvolution(n).lower()}; }

const std::vector<Rule> kRules = {
    {"", "Det", {11, 22}, lower_determinant, true},
    {"", "DeformConv", {19, 22}, lower_deformable_convolution, true},
};

}  // namespace

std::span<const Rule> slow_rules() { return kRules; }

}  // namespace sgtc
