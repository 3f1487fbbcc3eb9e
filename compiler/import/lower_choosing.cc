// Operators that choose: what their results hold, and so their shapes, depends on values. Shapes
// are static, so these values must be known when the model is compiled.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// The indices of the elements that are not zero: rank × count, in row-major order.
ValueIds lower_non_zero(Lowering& n) {
  const LiteralPtr known = n.literal_input(0, "the tensor whose non-zero elements are asked for");
  const Shape strides = row_major_strides(known->shape());
  const int64_t rank = std::max<int64_t>(1, static_cast<int64_t>(strides.size()));
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(rank));
  for (int64_t i = 0; i < known->element_count(); ++i) {
    if (known->as_double(i) == 0) continue;
    if (strides.empty()) rows[0].push_back(0);
    int64_t rest = i;
    for (size_t d = 0; d < strides.size(); ++d) {
      rows[d].push_back(rest / strides[d]);
      rest %= strides[d];
    }
  }
  std::vector<int64_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  const auto count = static_cast<int64_t>(rows[0].size());
  return {n.constant(make_literal(DType::kInt64, {rank, count}, flat))};
}

// The slices whose condition holds; the condition decides a shape, so it must be known.
ValueIds lower_compress(Lowering& n) {
  const ValueId x = n.input(0);
  const bool flat = !n.has_attribute("axis");
  const ValueId data = flat ? n.reshape(x, {element_count(n.shape(x))}) : x;
  const int64_t axis = flat ? 0 : normalized_axis(n.required_integer("axis"), n.rank(x));
  const std::vector<int64_t> condition = n.integers_input(1, "the condition of Compress");
  const int64_t size = n.shape(data)[static_cast<size_t>(axis)];
  if (std::ssize(condition) > size) {
    throw Error("the condition of Compress: expected at most " + std::to_string(size) +
                " elements, found " + std::to_string(condition.size()));
  }
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] != 0) kept.push_back(static_cast<int64_t>(i));
  }
  return {n.gather(data, n.constant_integers(kept), axis)};
}

// A number that orders like element `index`: NaN is the greatest and equals itself.
int64_t order_of(const Literal& literal, int64_t index) {
  if (literal.dtype() == DType::kUInt64) return literal.as_int(index) ^ INT64_MIN;
  if (!is_float(literal.dtype())) return literal.as_int(index);
  const double value = literal.as_double(index);
  if (std::isnan(value)) return INT64_MAX;
  if (value == 0) return 0;
  const auto bits = std::bit_cast<int64_t>(std::abs(value));
  return value < 0 ? -bits : bits;
}

struct Distinct {
  int64_t first = 0;  // where it is met first
  int64_t count = 0;
};

// The distinct elements, or slices along an axis, by their order or by where they are met first;
// where each is first, which of them each one is, and how often each is met.
ValueIds lower_unique(Lowering& n) {
  const LiteralPtr known = n.literal_input(0, "the tensor whose distinct elements are asked for");
  const bool flat = !n.has_attribute("axis");
  const Shape shape = flat ? Shape{known->element_count()} : known->shape();
  const int64_t axis = flat ? 0 : normalized_axis(n.required_integer("axis"), std::ssize(shape));
  const int64_t size = shape[static_cast<size_t>(axis)];
  const int64_t inner = row_major_strides(shape)[static_cast<size_t>(axis)];
  std::vector<std::vector<int64_t>> slices(static_cast<size_t>(size));
  for (int64_t i = 0; i < known->element_count(); ++i) {
    slices[static_cast<size_t>(i / inner % size)].push_back(order_of(*known, i));
  }
  std::map<std::vector<int64_t>, Distinct> distinct;
  for (int64_t i = 0; i < size; ++i) {
    ++distinct.try_emplace(slices[static_cast<size_t>(i)], Distinct{i, 0}).first->second.count;
  }
  std::vector<Distinct> found;
  for (const auto& [slice, where] : distinct) found.push_back(where);
  if (n.integer("sorted", 1) == 0) {
    std::sort(found.begin(), found.end(),
              [](const Distinct& a, const Distinct& b) { return a.first < b.first; });
  }
  std::map<int64_t, int64_t> places;  // of the first ones among those found
  std::vector<int64_t> firsts, counts, inverse;
  for (const Distinct& one : found) {
    places[one.first] = std::ssize(firsts);
    firsts.push_back(one.first);
    counts.push_back(one.count);
  }
  for (const auto& slice : slices) inverse.push_back(places.at(distinct.at(slice).first));
  const ValueId indices = n.constant_integers(firsts);
  const ValueId x = n.reshape(n.constant(known), shape);
  return {n.gather(x, indices, axis), indices, n.constant_integers(inverse),
          n.constant_integers(counts)};
}

// A box by its lower and upper bounds in both dimensions.
struct Box {
  std::array<double, 2> low, high;

  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
  // The part of the union of both that lies in both.
  double overlap(const Box& other) const {
    double common = 1;
    for (size_t i = 0; i < 2; ++i) {
      common *= std::max(0.0, std::min(high[i], other.high[i]) - std::max(low[i], other.low[i]));
    }
    return common > 0 ? common / (area() + other.area() - common) : 0;
  }
};

// Four numbers from `at` on: two corners, or a centre and the extents, x first then.
Box box_at(const Literal& boxes, int64_t at, bool is_centre) {
  std::array<double, 4> v{};
  for (size_t i = 0; i < 4; ++i) v[i] = boxes.as_double(at + static_cast<int64_t>(i));
  if (is_centre) {
    return {{v[1] - v[3] / 2, v[0] - v[2] / 2}, {v[1] + v[3] / 2, v[0] + v[2] / 2}};
  }
  return {{std::min(v[0], v[2]), std::min(v[1], v[3])},
          {std::max(v[0], v[2]), std::max(v[1], v[3])}};
}

// Greedy: for each batch and class the boxes by falling scores, without those that overlap one that
// was taken too much. Rows of (batch, class, box).
ValueIds lower_non_max_suppression(Lowering& n) {
  const LiteralPtr boxes = n.literal_input(0, "the boxes"),
                   scores = n.literal_input(1, "the scores");
  const Shape& b = boxes->shape();
  const Shape& s = scores->shape();
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2]) {
    throw Error("expected boxes [N, B, 4] and scores [N, C, B], found " + to_string(b) + " and " +
                to_string(s));
  }
  const int64_t most = n.has_input(2) ? n.integer_input(2, "the number of boxes per class") : 0;
  const double limit = n.has_input(3) ? n.real_input(3, "the limit of overlaps") : 0;
  const bool is_centre = n.integer("center_point_box", 0) != 0;
  std::vector<int64_t> rows;
  for (int64_t line = 0; line < s[0] * s[1]; ++line) {
    const auto score = [&](int64_t box) { return scores->as_double(line * s[2] + box); };
    std::vector<int64_t> order(static_cast<size_t>(s[2]));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t c) { return score(a) > score(c); });
    const double least = n.has_input(4) ? n.real_input(4, "the limit of scores") : -INFINITY;
    std::vector<Box> taken;
    for (const int64_t box : order) {
      if (std::ssize(taken) >= most || !(score(box) > least)) break;
      const Box candidate = box_at(*boxes, (line / s[1] * b[1] + box) * 4, is_centre);
      const bool is_hidden = std::any_of(taken.begin(), taken.end(), [&](const Box& other) {
        return candidate.overlap(other) > limit;
      });
      if (is_hidden) continue;
      taken.push_back(candidate);
      rows.insert(rows.end(), {line / s[1], line % s[1], box});
    }
  }
  return {n.constant(make_literal(DType::kInt64, {std::ssize(rows) / 3, 3}, rows))};
}

const std::vector<Rule> kRules = {
    {"", "NonZero", {9, 13}, lower_non_zero},
    {"", "Compress", {9, 11}, lower_compress},
    {"", "Unique", {11}, lower_unique},
    {"", "NonMaxSuppression", {10, 11}, lower_non_max_suppression},
};

}  // namespace

std::span<const Rule> choosing_rules() { return kRules; }

}  // namespace sgtc
