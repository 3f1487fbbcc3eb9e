// Gradients of contractions and pools.
#include <algorithm>
#include <string>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

ValueId matmul_of(Backward& b, ValueId left, bool transpose_left, ValueId right,
                  bool transpose_right) {
  return b.apply(
      Op::kMatMul, {left, right},
      {{"transpose_a", int64_t{transpose_left}}, {"transpose_b", int64_t{transpose_right}}});
}

/// [..., m, k] -> [rows, k].
ValueId fold_rows(Backward& b, ValueId x) {
  const int64_t columns = b.size(x, b.rank(x) - 1);
  int64_t rows = 1;
  for (int64_t axis = 0; axis + 1 < b.rank(x); ++axis) rows *= b.size(x, axis);
  return b.reshape(x, {rows, columns});
}

/// Whether the right operand is one matrix used by all batches of an untransposed left one: then
/// the batches are rows, and no gradient per batch has to be stored and summed.
bool batches_are_rows(Backward& b, bool transpose_left) {
  const Shape right = b.shape(b.x(1));
  const bool one_matrix = element_count({right.begin(), right.end() - 2}) == 1;
  return one_matrix && !transpose_left && b.rank(b.x(0)) > 2;
}

/// The gradient of the result in the type of the operands, which differ with result=f32.
ValueId factor(Backward& b) { return b.cast(b.g(), b.dtype(b.x(0))); }

Attributes with_sizes(const Attributes& attributes, const std::string& name, const Shape& operand) {
  Attributes result = attributes;
  result.set(name, Shape(operand.begin() + 2, operand.end()));
  return result;
}

/// The attributes that conv, conv_input_grad and conv_weight_grad share.
Attributes convolution_attributes(const Attributes& attributes) {
  Attributes result;
  for (const char* name : {"strides", "pads", "dilations", "groups"}) {
    if (attributes.has(name)) result.set(name, attributes.map().at(name));
  }
  return result;
}

}  // namespace

void matmul(Backward& b) {
  const bool ta = b.attributes().integer_or("transpose_a", 0) != 0;
  const bool tb = b.attributes().integer_or("transpose_b", 0) != 0;
  ValueId left = b.x(0);
  ValueId right = b.x(1);
  ValueId g = factor(b);
  const Shape left_shape = b.shape(left);
  const Shape right_shape = b.shape(right);
  if (batches_are_rows(b, ta)) {
    g = fold_rows(b, g);
    left = fold_rows(b, left);
    right = b.reshape(right, {right_shape.end()[-2], right_shape.end()[-1]});
  }
  if (b.needs(0)) {
    ValueId d = ta ? matmul_of(b, right, tb, g, true) : matmul_of(b, g, false, right, !tb);
    const bool folded = left != b.x(0);
    b.give(0, folded ? b.reshape(d, left_shape) : d);
  }
  if (b.needs(1)) {
    ValueId d = tb ? matmul_of(b, g, true, left, ta) : matmul_of(b, left, !ta, g, false);
    const bool folded = left != b.x(0);
    b.give(1, folded ? b.reshape(d, right_shape) : d);
  }
}

void conv(Backward& b) {
  const Attributes common = convolution_attributes(b.attributes());
  const ValueId g = factor(b);
  if (b.needs(0)) {
    b.give(0,
           b.apply(Op::kConvInputGrad, {g, b.x(1)}, with_sizes(common, "input", b.shape(b.x(0)))));
  }
  if (b.needs(1)) {
    b.give(1, b.apply(Op::kConvWeightGrad, {b.x(0), g},
                      with_sizes(common, "kernel", b.shape(b.x(1)))));
  }
}

void conv_input_grad(Backward& b) {
  const Attributes common = convolution_attributes(b.attributes());
  const ValueId g = factor(b);
  if (b.needs(0)) b.give(0, b.apply(Op::kConv, {g, b.x(1)}, common));
  if (b.needs(1)) {
    b.give(1, b.apply(Op::kConvWeightGrad, {g, b.x(0)},
                      with_sizes(common, "kernel", b.shape(b.x(1)))));
  }
}

void max_pool(Backward& b) { b.give(0, b.apply(Op::kMaxPoolGrad, {b.x(), b.g()}, b.attributes())); }

void average_pool(Backward& b) {
  b.give(0, b.apply(Op::kAveragePoolGrad, {b.g()},
                    with_sizes(b.attributes(), "input", b.shape(b.x()))));
}

}  // namespace sgtc::gradient
