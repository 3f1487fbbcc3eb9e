// Gradients of operators that move elements: the inverse movement.
#include <algorithm>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

/// `g` with its elements reversed along `axis`.
ValueId reverse(Backward& b, ValueId g, int64_t axis) {
  Shape sizes = b.shape(g);
  std::vector<int64_t> starts(sizes.size(), 0);
  std::vector<int64_t> steps(sizes.size(), 1);
  starts[static_cast<size_t>(axis)] = sizes[static_cast<size_t>(axis)] - 1;
  steps[static_cast<size_t>(axis)] = -1;
  return b.apply(Op::kSlice, {g}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

ValueId pad_zeros(Backward& b, ValueId g, const Shape& low, const Shape& high) {
  return b.apply(Op::kPad, {g, b.constant(b.dtype(g), 0)}, {{"low", low}, {"high", high}});
}

/// `g` along `axis` with step-1 zeros after each element: size n becomes n*step.
ValueId dilate(Backward& b, ValueId g, int64_t axis, int64_t step) {
  const Shape from = b.shape(g);
  Shape split = from;
  split.insert(split.begin() + axis + 1, 1);
  Shape high(split.size(), 0);
  high[static_cast<size_t>(axis) + 1] = step - 1;
  Shape merged = from;
  merged[static_cast<size_t>(axis)] *= step;
  ValueId padded = pad_zeros(b, b.reshape(g, split), Shape(split.size(), 0), high);
  return b.reshape(padded, merged);
}

}  // namespace

void reshape(Backward& b) { b.give(0, b.reshape(b.g(), b.shape(b.x()))); }

void transpose(Backward& b) {
  b.give(0, b.transpose(b.g(), inverse_permutation(b.attributes().integers("perm"))));
}

void broadcast(Backward& b) { b.give(0, b.g()); }

void slice(Backward& b) {
  const Shape whole = b.shape(b.x());
  Shape low = b.attributes().integers("starts");
  Shape steps = b.attributes().integers("steps");
  Shape high(whole.size());
  ValueId g = b.g();
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    int64_t size = b.size(g, axis);
    if (size == 0) {
      low[i] = 0;
    } else if (size == 1) {
      steps[i] = 1;
    } else if (steps[i] < 0) {
      low[i] += (size - 1) * steps[i];
      steps[i] = -steps[i];
      g = reverse(b, g, axis);
    }
    if (steps[i] > 1 && size > 0) {
      g = dilate(b, g, axis, steps[i]);
      size = std::min(size * steps[i], whole[i] - low[i]);
      if (size < b.size(g, axis)) g = b.slice_axis(g, axis, 0, size);
    }
    high[i] = whole[i] - low[i] - size;
  }
  b.give(0, b.shape(g) == whole ? g : pad_zeros(b, g, low, high));
}

void pad(Backward& b) {
  const Shape low = b.attributes().integers("low");
  const Shape inner = b.shape(b.x());
  if (b.needs(0)) {
    b.give(0, b.apply(Op::kSlice, {b.g()},
                      {{"starts", low}, {"sizes", inner}, {"steps", Shape(low.size(), 1)}}));
  }
  if (b.needs(1)) {
    const DType dtype = b.dtype(b.x());
    ValueId is_padding =
        b.apply(Op::kPad, {b.zeros(dtype, inner), b.constant(dtype, 1)}, b.attributes());
    b.give(1, b.mul(b.g(), is_padding));
  }
}

void concat(Backward& b) {
  int64_t start = 0;
  for (size_t i = 0; i < b.operands(); ++i) {
    int64_t size = b.size(b.x(i), b.axis());
    if (b.needs(i)) b.give(i, b.slice_axis(b.g(), b.axis(), start, size));
    start += size;
  }
}

}  // namespace sgtc::gradient
