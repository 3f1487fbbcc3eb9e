// Nodes that move elements without computing: shapes, slices, pads, concatenation.
#include <algorithm>

#include "import/checks.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// 0 copies the input's size unless allowzero; one -1 takes the rest.
Shape reshape_target(const Shape& input, std::vector<int64_t> wanted, bool allow_zero) {
  int64_t known = 1;
  int64_t rest = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !allow_zero) {
      if (i >= input.size()) {
        throw Error("dimension " + std::to_string(i) +
                    " of the target shape is 0, which copies "
                    "the input's size, but the input has shape " +
                    to_string(input));
      }
      wanted[i] = input[i];
    }
    if (wanted[i] < -1) throw Error("target shape " + to_string(wanted) + " has a size below -1");
    if (wanted[i] == -1) {
      if (rest >= 0) throw Error("target shape " + to_string(wanted) + " has more than one -1");
      rest = static_cast<int64_t>(i);
    } else if (__builtin_mul_overflow(known, wanted[i], &known)) {
      throw Error("target shape " + to_string(wanted) + " has more than 2^63 elements");
    }
  }
  if (rest < 0) return wanted;
  const int64_t count = element_count(input);
  if (allow_zero && std::find(wanted.begin(), wanted.end(), 0) != wanted.end()) {
    throw Error("target shape " + to_string(wanted) + " has both 0 and -1 with allowzero=1");
  }
  if (known == 0 ? count != 0 : count % known != 0) {
    throw Error("cannot reshape " + to_string(input) + " to " + to_string(wanted) + ": " +
                std::to_string(count) + " elements are not a multiple of " + std::to_string(known));
  }
  wanted[static_cast<size_t>(rest)] = known == 0 ? 0 : count / known;
  return wanted;
}

ValueIds lower_reshape(Lowering& n) {
  const ValueId x = n.input(0);
  const std::vector<int64_t> wanted =
      n.since() == 1 ? n.integers("shape") : n.integers_input(1, "the target shape");
  return {n.reshape(x, reshape_target(n.shape(x), wanted, n.integer("allowzero", 0) != 0))};
}

ValueIds lower_flatten(Lowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.integer("axis", 1);
  const int64_t rank = n.rank(x);
  if (axis < -rank || axis > rank) normalized_axis(axis, rank);
  if (axis < 0) axis += rank;
  Shape target{1, 1};
  for (int64_t i = 0; i < rank; ++i) target[i < axis ? 0 : 1] *= n.shape(x)[size_t(i)];
  return {n.reshape(x, target)};
}

ValueIds lower_squeeze(Lowering& n) {
  const ValueId x = n.input(0);
  const auto given = n.axes(1);
  std::vector<int64_t> axes;
  if (given) {
    axes = normalized_axes(*given, n.rank(x));
  } else {
    for (int64_t i = 0; i < n.rank(x); ++i) {
      if (n.shape(x)[static_cast<size_t>(i)] == 1) axes.push_back(i);
    }
  }
  return {n.squeeze(x, axes)};
}

ValueIds lower_unsqueeze(Lowering& n) {
  const ValueId x = n.input(0);
  const auto axes = n.axes(1);
  if (!axes) throw Error("axes are missing");
  const int64_t rank = n.rank(x) + static_cast<int64_t>(axes->size());
  return {n.unsqueeze(x, normalized_axes(*axes, rank))};
}

ValueIds lower_transpose(Lowering& n) {
  const ValueId x = n.input(0);
  std::vector<int64_t> perm = all_axes(n.rank(x));
  std::reverse(perm.begin(), perm.end());
  perm = n.integers("perm", perm);
  if (normalized_axes(perm, n.rank(x)) != all_axes(n.rank(x))) {
    throw Error("attribute \"perm\" is not a permutation of the dimensions of " +
                to_string(n.shape(x)));
  }
  return {n.transpose(x, perm)};
}

ValueIds lower_expand(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape wanted = n.integers_input(1, "the target shape");
  Shape target;
  if (!broadcast_shapes(n.shape(x), wanted, &target)) {
    throw Error("shape " + to_string(n.shape(x)) + " does not broadcast with " + to_string(wanted));
  }
  return {n.broadcast(x, target)};
}

ValueIds lower_tile(Lowering& n) {
  const ValueId x = n.input(0);
  const std::vector<int64_t> repeats = n.integers_input(1, "the repeats");
  const Shape shape = n.shape(x);
  if (repeats.size() != shape.size()) {
    throw Error("expected one repeat for each dimension of " + to_string(shape) + ", found " +
                to_string(repeats));
  }
  Shape open, repeated, closed;
  for (size_t i = 0; i < shape.size(); ++i) {
    checked_factor(repeats[i], 0, "a repeat");
    open.insert(open.end(), {1, shape[i]});
    repeated.insert(repeated.end(), {repeats[i], shape[i]});
    closed.push_back(repeats[i] * shape[i]);
  }
  return {n.reshape(n.broadcast(n.reshape(x, open), repeated), closed)};
}

ValueIds lower_concat(Lowering& n) {
  const ValueIds parts = n.inputs();
  if (parts.empty()) throw Error("expected at least one input, found none");
  return {n.concat(parts, normalized_axis(n.required_integer("axis"), n.rank(parts[0])))};
}

// ONNX Runtime's form, which also gives the length of each part.
ValueIds lower_measured_concat(Lowering& n) {
  ValueIds outputs = lower_concat(n);
  const int64_t axis = normalized_axis(n.required_integer("axis"), n.rank(outputs[0]));
  std::vector<int64_t> lengths;
  for (int i = 0; i < n.input_count(); ++i) {
    lengths.push_back(n.input_shape(i)[static_cast<size_t>(axis)]);
  }
  outputs.push_back(n.constant_integers(lengths));
  return outputs;
}

std::vector<int64_t> split_sizes(Lowering& n, int64_t total) {
  if (n.has_input(1)) return n.integers_input(1, "the sizes of the parts");
  if (n.since() < 13 && n.has_attribute("split")) return n.integers("split");
  const int64_t parts =
      checked_factor(n.integer("num_outputs", n.node().output_size()), 1, "the number of parts");
  const int64_t size = (total + parts - 1) / parts;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), size);
  sizes.back() = total - size * (parts - 1);
  return sizes;
}

ValueIds lower_split(Lowering& n) {
  const ValueId x = n.input(0);
  const int64_t axis = normalized_axis(n.integer("axis", 0), n.rank(x));
  const int64_t total = n.shape(x)[static_cast<size_t>(axis)];
  const std::vector<int64_t> sizes = split_sizes(n, total);
  ValueIds parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > total - start) {
      start = -1;
      break;
    }
    parts.push_back(n.slice(x, axis, start, size));
    start += size;
  }
  if (start != total) {
    throw Error("the sizes of the parts " + to_string(sizes) + " do not add up to " +
                std::to_string(total));
  }
  return parts;
}

struct SliceSpec {
  std::vector<int64_t> starts, ends, axes, steps;
};

SliceSpec slice_spec(Lowering& n) {
  SliceSpec spec;
  if (n.since() < 10) {
    spec.starts = n.integers("starts");
    spec.ends = n.integers("ends");
    spec.axes = n.integers("axes", all_axes(static_cast<int64_t>(spec.starts.size())));
  } else {
    spec.starts = n.integers_input(1, "the starts of the slice");
    spec.ends = n.integers_input(2, "the ends of the slice");
    spec.axes = n.has_input(3) ? n.integers_input(3, "the axes of the slice")
                               : all_axes(static_cast<int64_t>(spec.starts.size()));
    if (n.has_input(4)) spec.steps = n.integers_input(4, "the steps of the slice");
  }
  if (spec.steps.empty()) spec.steps.assign(spec.starts.size(), 1);
  if (spec.ends.size() != spec.starts.size() || spec.axes.size() != spec.starts.size() ||
      spec.steps.size() != spec.starts.size()) {
    throw Error("starts, ends, axes and steps of the slice differ in length");
  }
  return spec;
}

ValueIds lower_slice(Lowering& n) {
  ValueId x = n.input(0);
  const SliceSpec spec = slice_spec(n);
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    const int64_t axis = normalized_axis(spec.axes[i], n.rank(x));
    const int64_t size = n.shape(x)[static_cast<size_t>(axis)];
    const int64_t step = spec.steps[i];
    if (step == 0) throw Error("a step of the slice is 0");
    // As Python does: negative positions count from the end, then both are clamped.
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    int64_t start = spec.starts[i], end = spec.ends[i];
    start = std::clamp(start < 0 ? start + size : start, step > 0 ? low : int64_t{0},
                       std::max<int64_t>(high, 0));
    end = std::clamp(end < 0 ? std::max<int64_t>(end, -size - 1) + size : end, low, high);
    const int64_t distance = step > 0 ? end - start : start - end;
    const int64_t width = step > 0 ? step : -std::max(step, -INT64_MAX);
    const int64_t count = distance <= 0 || size == 0 ? 0 : (distance - 1) / width + 1;
    x = n.slice(x, axis, count == 0 ? 0 : start, count, count <= 1 ? 1 : step);
  }
  return {x};
}

// Source positions of a padded axis for the modes that repeat elements of the input.
std::vector<int64_t> padded_positions(const std::string& mode, int64_t size, int64_t low,
                                      int64_t high) {
  if (size == 0) throw Error("a dimension of size 0 cannot be padded with mode " + mode);
  checked_list_size({size + std::max<int64_t>(low, 0) + std::max<int64_t>(high, 0)}, "the pad");
  std::vector<int64_t> positions;
  for (int64_t i = -low; i < size + high; ++i) {
    int64_t at = i;
    if (mode == "edge") {
      at = std::clamp<int64_t>(i, 0, size - 1);
    } else if (mode == "wrap") {
      at = ((i % size) + size) % size;
    } else {  // reflect
      const int64_t period = std::max<int64_t>(1, 2 * (size - 1));
      at = ((i % period) + period) % period;
      at = std::min(at, period - at) % size;
    }
    positions.push_back(at);
  }
  return positions;
}

ValueId pad_constant(Lowering& n, ValueId x, const std::vector<int64_t>& low,
                     const std::vector<int64_t>& high) {
  const DType dtype = n.dtype(x);
  ValueId value = n.scalar(dtype, 0);
  if (n.since() < 11) value = n.scalar(dtype, n.real("value", 0));
  if (n.since() >= 11 && n.has_input(2)) value = n.reshape(n.input(2), {});
  std::vector<int64_t> below = low, above = high;
  for (size_t i = 0; i < low.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t cut_low = std::max<int64_t>(0, -low[i]);
    const int64_t cut_high = std::max<int64_t>(0, -high[i]);
    const int64_t kept = n.shape(x)[i] - cut_low - cut_high;
    if (kept < 0) throw Error("negative pads remove more than dimension " + std::to_string(i));
    x = n.slice(x, axis, cut_low, kept);
    below[i] = std::max<int64_t>(0, low[i]);
    above[i] = std::max<int64_t>(0, high[i]);
  }
  return n.add(Op::kPad, {x, value}, {{"low", below}, {"high", above}});
}

int64_t checked_pad(int64_t pad) { return checked_factor(pad, -kMaxFactor, "a pad"); }

ValueIds lower_pad(Lowering& n) {
  ValueId x = n.input(0);
  const std::vector<int64_t> pads =
      n.since() < 11 ? n.integers("pads") : n.integers_input(1, "the pads");
  const std::vector<int64_t> given =
      n.has_input(3) ? n.integers_input(3, "the padded axes") : all_axes(n.rank(x));
  if (pads.size() != 2 * given.size()) {
    throw Error("expected " + std::to_string(2 * given.size()) + " pads, found " +
                std::to_string(pads.size()));
  }
  std::vector<int64_t> low(n.shape(x).size(), 0), high = low;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto axis = static_cast<size_t>(normalized_axis(given[i], n.rank(x)));
    low[axis] = checked_pad(pads[i]);
    high[axis] = checked_pad(pads[i + given.size()]);
  }
  const std::string mode = n.text("mode", "constant");
  if (mode == "constant") return {pad_constant(n, x, low, high)};
  if (mode != "edge" && mode != "reflect" && mode != "wrap") {
    throw Error("attribute \"mode\": expected constant, reflect, edge or wrap, found \"" + mode +
                "\"");
  }
  for (int64_t axis = 0; axis < n.rank(x); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (low[i] == 0 && high[i] == 0) continue;
    const auto positions = padded_positions(mode, n.shape(x)[i], low[i], high[i]);
    x = n.gather(x, n.constant_integers(positions), axis);
  }
  return {x};
}

ValueIds lower_depth_to_space(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape s = n.shape(x);
  const int64_t b = checked_factor(n.required_integer("blocksize"), 1, "attribute \"blocksize\"");
  if (s.size() != 4 || s[1] % (b * b) != 0) {
    throw Error("expected [N,C,H,W] with C a multiple of the squared block size, found " +
                to_string(s));
  }
  const int64_t c = s[1] / (b * b);
  const bool column_row = n.text("mode", "DCR") == "CRD";
  const ValueId open = column_row ? n.reshape(x, {s[0], c, b, b, s[2], s[3]})
                                  : n.reshape(x, {s[0], b, b, c, s[2], s[3]});
  const std::vector<int64_t> perm =
      column_row ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
  return {n.reshape(n.transpose(open, perm), {s[0], c, s[2] * b, s[3] * b})};
}

ValueIds lower_space_to_depth(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape s = n.shape(x);
  const int64_t b = checked_factor(n.required_integer("blocksize"), 1, "attribute \"blocksize\"");
  if (s.size() != 4 || s[2] % b != 0 || s[3] % b != 0) {
    throw Error("expected [N,C,H,W] with H and W multiples of the block size, found " +
                to_string(s));
  }
  const ValueId open = n.reshape(x, {s[0], s[1], s[2] / b, b, s[3] / b, b});
  return {
      n.reshape(n.transpose(open, {0, 3, 5, 1, 2, 4}), {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

ValueIds lower_trilu(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape& shape = n.shape(x);
  if (shape.size() < 2) throw Error("expected rank 2 or more, found " + to_string(shape));
  const auto diagonal =
      n.has_input(1) ? static_cast<double>(n.integer_input(1, "the diagonal")) : 0.0;
  const bool upper = n.integer("upper", 1) != 0;
  const ValueId rows = n.iota({shape[shape.size() - 2], 1}, 0, DType::kInt64);
  const ValueId columns = n.iota({1, shape.back()}, 1, DType::kInt64);
  const Op compare = upper ? Op::kGreaterEqual : Op::kLessEqual;
  const ValueId kept = n.add(compare, {columns, n.add_scalar(rows, diagonal)});
  return {n.where(kept, x, n.scalar(n.dtype(x), 0))};
}

const std::vector<Rule> kRules = {
    {"", "Reshape", {1, 5, 13, 14, 19, 21, 23}, lower_reshape},
    {"", "Flatten", {1, 9, 11, 13, 21, 23}, lower_flatten},
    {"", "Squeeze", {1, 11, 13, 21, 23}, lower_squeeze},
    {"", "Unsqueeze", {1, 11, 13, 21, 23}, lower_unsqueeze},
    {"", "Transpose", {1, 13, 21, 23}, lower_transpose},
    {"", "Expand", {8, 13}, lower_expand},
    {"", "Tile", {6, 13}, lower_tile},
    {"", "Concat", {4, 11, 13}, lower_concat},
    {"com.microsoft", "ConcatTraining", {1}, lower_measured_concat},
    {"", "Split", {2, 11, 13, 18}, lower_split},
    {"com.microsoft", "SplitTraining", {1}, lower_split},
    {"", "Slice", {1, 10, 11, 13}, lower_slice},
    {"", "Pad", {2, 11, 13, 18, 19, 21, 23}, lower_pad},
    {"", "DepthToSpace", {1, 11, 13}, lower_depth_to_space},
    {"", "SpaceToDepth", {1, 13}, lower_space_to_depth},
    {"", "Trilu", {14}, lower_trilu},
};

}  // namespace

std::span<const Rule> movement_rules() { return kRules; }

}  // namespace sgtc
