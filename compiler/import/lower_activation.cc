// Activation functions.
//
// A branch that is not taken must not spoil the gradient of the other: where a formula overflows
// on one side (exp of a large argument), its argument is clamped to the side that uses it.
#include <cmath>

#include "import/activations.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

ValueId is_positive(Emitter& e, ValueId x) {
  return e.add(Op::kGreater, {x, e.scalar(e.dtype(x), 0)});
}

// exp(x) - 1 for the non-positive part of x, as tanh(x/2)·(exp(x) + 1): exact for small x.
ValueId expm1_of_negative_part(Emitter& e, ValueId x) {
  const ValueId part = e.add(Op::kMin, {x, e.scalar(e.dtype(x), 0)});
  const ValueId half = e.add(Op::kTanh, {e.mul_scalar(part, 0.5)});
  return e.mul(half, e.add_scalar(e.exp(part), 1));
}

}  // namespace

// max(0, x) with the zero first: at a tie the gradient goes to the constant, so relu'(0) is 0.
ValueId emit_relu(Emitter& e, ValueId x) { return e.add(Op::kMax, {e.scalar(e.dtype(x), 0), x}); }

ValueId emit_gelu(Emitter& e, ValueId x) {
  const ValueId scaled = e.mul_scalar(x, 1 / std::sqrt(2.0));
  const ValueId bell = e.add_scalar(e.add(Op::kErf, {scaled}), 1);
  return e.mul(e.mul_scalar(x, 0.5), bell);
}

ValueId emit_gelu_tanh(Emitter& e, ValueId x) {
  const ValueId cube = e.mul(e.mul(x, x), x);
  const ValueId inner = e.add(x, e.mul_scalar(cube, 0.044715));
  const ValueId scaled = e.mul_scalar(inner, std::sqrt(2.0 / 3.14159265358979323846));
  const ValueId bell = e.add_scalar(e.add(Op::kTanh, {scaled}), 1);
  return e.mul(e.mul_scalar(x, 0.5), bell);
}

ValueId emit_elu(Emitter& e, ValueId x, double alpha) {
  const ValueId negative = e.mul_scalar(expm1_of_negative_part(e, x), alpha);
  return e.where(is_positive(e, x), x, negative);
}

ValueId emit_leaky_relu(Emitter& e, ValueId x, double alpha) {
  const ValueId below = e.add(Op::kLess, {x, e.scalar(e.dtype(x), 0)});
  return e.where(below, e.mul_scalar(x, alpha), x);
}

ValueId emit_thresholded_relu(Emitter& e, ValueId x, double alpha) {
  const ValueId above = e.add(Op::kGreater, {x, e.scalar(e.dtype(x), alpha)});
  return e.where(above, x, e.scalar(e.dtype(x), 0));
}

ValueId emit_hard_sigmoid(Emitter& e, ValueId x, double alpha, double beta) {
  const ValueId line = e.add_scalar(e.mul_scalar(x, alpha), beta);
  const ValueId above = e.add(Op::kMax, {line, e.scalar(e.dtype(x), 0)});
  return e.add(Op::kMin, {above, e.scalar(e.dtype(x), 1)});
}

ValueId emit_swish(Emitter& e, ValueId x, double alpha) {
  const ValueId scaled = alpha == 1 ? x : e.mul_scalar(x, alpha);
  return e.mul(x, e.add(Op::kSigmoid, {scaled}));
}

ValueId emit_softsign(Emitter& e, ValueId x) {
  return e.div(x, e.add_scalar(e.add(Op::kAbs, {x}), 1));
}

namespace {

ValueIds lower_relu(Lowering& n) { return {emit_relu(n, n.input(0))}; }

ValueIds lower_sigmoid(Lowering& n) { return {n.add(Op::kSigmoid, {n.input(0)})}; }
ValueIds lower_tanh(Lowering& n) { return {n.add(Op::kTanh, {n.input(0)})}; }
ValueIds lower_softplus(Lowering& n) { return {n.add(Op::kSoftplus, {n.input(0)})}; }

ValueIds lower_elu(Lowering& n) { return {emit_elu(n, n.input(0), n.real("alpha", 1))}; }

ValueIds lower_leaky_relu(Lowering& n) {
  return {emit_leaky_relu(n, n.input(0), n.real("alpha", 0.01f))};
}

ValueIds lower_thresholded_relu(Lowering& n) {
  return {emit_thresholded_relu(n, n.input(0), n.real("alpha", 1))};
}

ValueIds lower_softsign(Lowering& n) { return {emit_softsign(n, n.input(0))}; }

// The slope broadcasts to x from the right, as everywhere since opset 7.
ValueIds lower_prelu(Lowering& n) {
  const ValueId x = n.input(0);
  const ValueId below = n.add(Op::kLess, {x, n.scalar(n.dtype(x), 0)});
  return {n.where(below, n.mul(x, n.input(1)), x)};
}

ValueIds lower_selu(Lowering& n) {
  const ValueId x = n.input(0);
  const double alpha = n.real("alpha", 1.67326319217681884765625);
  const double gamma = n.real("gamma", 1.05070102214813232421875);
  const ValueId negative = n.mul_scalar(expm1_of_negative_part(n, x), alpha);
  return {n.mul_scalar(n.where(is_positive(n, x), x, negative), gamma)};
}

ValueIds lower_celu(Lowering& n) {
  const ValueId x = n.input(0);
  const double alpha = n.real("alpha", 1);
  const ValueId scaled = n.mul_scalar(x, 1 / alpha);
  const ValueId negative = n.mul_scalar(expm1_of_negative_part(n, scaled), alpha);
  return {n.where(is_positive(n, x), x, negative)};
}

ValueIds lower_hard_sigmoid(Lowering& n) {
  return {emit_hard_sigmoid(n, n.input(0), n.real("alpha", 0.2f), n.real("beta", 0.5))};
}

ValueIds lower_hard_swish(Lowering& n) {
  const ValueId x = n.input(0);
  return {n.mul(x, emit_hard_sigmoid(n, x, 1.0 / 6, 0.5))};
}

ValueIds lower_shrink(Lowering& n) {
  const ValueId x = n.input(0);
  const double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0);
  const ValueId zero = n.scalar(n.dtype(x), 0);
  const ValueId below = n.add(Op::kLess, {x, n.scalar(n.dtype(x), -lambda)});
  const ValueId above = n.add(Op::kGreater, {x, n.scalar(n.dtype(x), lambda)});
  const ValueId upper = n.where(above, n.add_scalar(x, -bias), zero);
  return {n.where(below, n.add_scalar(x, bias), upper)};
}

ValueIds lower_mish(Lowering& n) {
  const ValueId x = n.input(0);
  return {n.mul(x, n.add(Op::kTanh, {n.add(Op::kSoftplus, {x})}))};
}

ValueIds lower_swish(Lowering& n) { return {emit_swish(n, n.input(0), n.real("alpha", 1))}; }

ValueIds lower_gelu(Lowering& n) {
  const std::string kind = n.text("approximate", "none");
  if (kind != "none" && kind != "tanh") {
    throw Error("attribute \"approximate\": expected none or tanh, found \"" + kind + "\"");
  }
  return {kind == "tanh" ? emit_gelu_tanh(n, n.input(0)) : emit_gelu(n, n.input(0))};
}

// min(high, max(x, low)): with low > high the result is high everywhere.
ValueIds lower_clip(Lowering& n) {
  ValueId x = n.input(0);
  if (n.since() < 11) {
    if (n.has_attribute("min")) {
      x = n.add(Op::kMax, {x, n.scalar(n.dtype(x), n.real("min", 0))});
    }
    if (n.has_attribute("max")) {
      x = n.add(Op::kMin, {x, n.scalar(n.dtype(x), n.real("max", 0))});
    }
    return {x};
  }
  if (n.has_input(1)) x = n.add(Op::kMax, {x, n.input(1)});
  if (n.has_input(2)) x = n.add(Op::kMin, {x, n.input(2)});
  return {x};
}

ValueId emit_hardmax(Lowering& n, ValueId x, int64_t axis) {
  const ValueId best = n.add(Op::kArgMax, {x}, {{"axis", axis}, {"select_last", int64_t{0}}});
  Shape line(n.shape(x).size(), 1);
  line[static_cast<size_t>(axis)] = n.shape(x)[static_cast<size_t>(axis)];
  const ValueId hit = n.add(Op::kEqual, {n.iota(line, axis, DType::kInt64), best});
  return n.cast(hit, n.dtype(x));
}

template <Op op>
ValueId emit_along(Lowering& n, ValueId x, int64_t axis) {
  return n.add(op, {x}, {{"axis", axis}});
}

// Softmax and its kin along one dimension; before opset 13 the dimensions from the axis on form
// one.
template <ValueId (*emit)(Lowering&, ValueId, int64_t)>
ValueIds lower_along_axis(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  if (n.since() >= 13) {
    if (shape.empty()) throw Error("expected a tensor of rank 1 or more, found a scalar");
    return {emit(n, x, normalized_axis(n.integer("axis", -1), n.rank(x)))};
  }
  const int64_t axis = normalized_axis(n.integer("axis", 1), n.rank(x));
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < n.rank(x); ++i) {
    (i < axis ? rows : columns) *= shape[static_cast<size_t>(i)];
  }
  return {n.reshape(emit(n, n.reshape(x, {rows, columns}), 1), shape)};
}

const std::vector<Rule> kRules = {
    {"", "Relu", {6, 13, 14}, lower_relu},
    {"", "Sigmoid", {6, 13}, lower_sigmoid},
    {"", "Tanh", {6, 13}, lower_tanh},
    {"", "Softplus", {1, 22}, lower_softplus},
    {"", "LeakyRelu", {6, 16}, lower_leaky_relu},
    {"", "PRelu", {7, 9, 16}, lower_prelu},
    {"", "Elu", {6, 22}, lower_elu},
    {"", "Selu", {6, 22}, lower_selu},
    {"", "Celu", {12}, lower_celu},
    {"", "HardSigmoid", {6, 22}, lower_hard_sigmoid},
    {"", "HardSwish", {14, 22}, lower_hard_swish},
    {"", "Softsign", {1, 22}, lower_softsign},
    {"", "ThresholdedRelu", {10, 22}, lower_thresholded_relu},
    {"", "Shrink", {9}, lower_shrink},
    {"", "Mish", {18, 22}, lower_mish},
    {"", "Swish", {24}, lower_swish},
    {"", "Gelu", {20}, lower_gelu},
    {"", "Clip", {6, 11, 12, 13}, lower_clip},
    {"", "Softmax", {1, 11, 13}, lower_along_axis<emit_along<Op::kSoftmax>>},
    {"", "LogSoftmax", {1, 11, 13}, lower_along_axis<emit_along<Op::kLogSoftmax>>},
    {"", "Hardmax", {1, 11, 13}, lower_along_axis<emit_hardmax>},
};

}  // namespace

std::span<const Rule> activation_rules() { return kRules; }

}  // namespace sgtc
