// Operators of ONNX Runtime's domain that are gradients of others. They appear in the training
// graphs that its artifact generator writes.
//
// Where a formula of saved results is short it is written down; elsewhere the forward expression is
// emitted again and differentiated, and common subexpressions meet later.
#include "import/activations.h"
#include "import/losses.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// (dY, X), or (dY, Y): both are positive together.
ValueIds lower_relu_gradient(Lowering& n) {
  const ValueId dy = n.input(0), x = n.input(1);
  const ValueId positive = n.add(Op::kGreater, {x, n.scalar(n.dtype(x), 0)});
  return {n.where(positive, dy, n.scalar(n.dtype(dy), 0))};
}

ValueIds lower_sigmoid_gradient(Lowering& n) {
  const ValueId dy = n.input(0), y = n.input(1);
  return {n.mul(dy, n.mul(y, n.sub(n.scalar(n.dtype(y), 1), y)))};
}

ValueIds lower_tanh_gradient(Lowering& n) {
  const ValueId dy = n.input(0), y = n.input(1);
  return {n.mul(dy, n.sub(n.scalar(n.dtype(y), 1), n.mul(y, y)))};
}

// (dY, X).
ValueIds lower_quick_gelu_gradient(Lowering& n) {
  const ValueId x = n.input(1);
  return n.gradients(emit_swish(n, x, n.real("alpha", kQuickGeluAlpha)), n.input(0), {x});
}

// (dY, X), and the bias that the forward operator added to X.
template <ValueId (*activation)(Emitter&, ValueId)>
ValueIds lower_activation_gradient(Lowering& n) {
  const ValueId dy = n.input(0);
  const ValueId x = n.has_input(2) ? n.add(n.input(1), n.input(2)) : n.input(1);
  return n.gradients(activation(n, x), dy, {x});
}

ValueId sum_over(Lowering& n, ValueId x, int64_t axis) {
  return n.reduce(Op::kReduceSum, x, {axis});
}

int64_t axis_of(Lowering& n) { return normalized_axis(n.integer("axis", -1), n.input_rank(0)); }

// (dY, Y).
ValueIds lower_softmax_gradient(Lowering& n) {
  const ValueId dy = n.input(0), y = n.input(1);
  const ValueId weighted = n.mul(dy, y);
  return {n.sub(weighted, n.mul(y, sum_over(n, weighted, axis_of(n))))};
}

ValueIds lower_log_softmax_gradient(Lowering& n) {
  const ValueId dy = n.input(0), y = n.input(1);
  return {n.sub(dy, n.mul(n.exp(y), sum_over(n, dy, axis_of(n))))};
}

// (dY, log-probabilities, labels, class weights, ignored label): of the scores before the softmax.
ValueIds lower_cross_entropy_gradient(Lowering& n) {
  const ValueId dy = n.input(0), scores = n.input(1);
  LikelihoodLoss loss;
  loss.log_probabilities = scores;
  loss.labels = n.input(2);
  if (n.has_input(3)) loss.weights = n.input(3);
  if (n.has_attribute("ignore_index")) loss.ignore_index = n.integer("ignore_index", 0);
  if (n.has_input(4)) loss.ignore_index = n.integer_input(4, "the ignored label");
  loss.reduction = n.text("reduction", "mean");
  const ValueId value = emit_likelihood_loss(n, loss);
  const ValueId seed = n.cast(n.reshape(dy, n.shape(value)), n.dtype(value));
  const ValueId gradient = n.gradients(value, seed, {scores}).front();
  return {n.sub(gradient, n.mul(n.exp(scores), sum_over(n, gradient, 1)))};
}

void need_shape_of_input(Lowering& n, ValueId dy, ValueId x) {
  if (n.shape(dy) == n.shape(x)) return;
  throw Error("expected a gradient of the shape of X, " + to_string(n.shape(x)) + ", found " +
              to_string(n.shape(dy)));
}

// (dY, X, scale, mean, reciprocal deviation) -> dX, dscale, dbias; without a mean and a bias where
// the normalization does not centre.
template <bool centres>
ValueIds lower_layer_normalization_gradient(Lowering& n) {
  const ValueId dy = n.input(0), x = n.input(1), scale = n.input(2);
  const ValueId inverse = n.input(centres ? 4 : 3);
  need_shape_of_input(n, dy, x);
  const int64_t first = axis_of(n);
  std::vector<int64_t> outer = all_axes(n.rank(x));
  const std::vector<int64_t> inner(outer.begin() + first, outer.end());
  outer.resize(static_cast<size_t>(first));
  const DType dtype = n.dtype(inverse);
  const ValueId wide = n.cast(x, dtype);
  const ValueId normalized = n.mul(centres ? n.sub(wide, n.input(3)) : wide, inverse);
  const ValueId upstream = n.cast(dy, dtype);
  const ValueId scaled = n.mul(upstream, n.cast(scale, dtype));
  const ValueId along = n.mul(normalized, n.mean(n.mul(scaled, normalized), inner));
  const ValueId centred = n.sub(centres ? n.sub(scaled, n.mean(scaled, inner)) : scaled, along);
  const auto parameter = [&](ValueId gradient) {
    const ValueId sum = n.reduce(Op::kReduceSum, gradient, outer);
    return n.cast(n.reshape(sum, n.shape(scale)), n.dtype(scale));
  };
  ValueIds gradients{n.cast(n.mul(centred, inverse), n.dtype(x)),
                     parameter(n.mul(upstream, normalized))};
  if (centres) gradients.push_back(parameter(upstream));
  return gradients;
}

// (dY, X, scale, mean, reciprocal deviation), the last three per channel -> dX, dscale, dbias.
ValueIds lower_batch_normalization_gradient(Lowering& n) {
  const ValueId dy = n.input(0), x = n.input(1);
  need_shape_of_input(n, dy, x);
  if (n.rank(x) < 2) throw Error("expected [N, C, …], found " + to_string(n.shape(x)));
  const DType dtype = n.input_type(4).dtype;
  std::vector<int64_t> axes = all_axes(n.rank(x));
  axes.erase(axes.begin() + 1);
  Shape line(n.shape(x).size(), 1);
  line[1] = n.shape(x)[1];
  const auto per_channel = [&](int index) {
    return n.reshape(n.cast(n.input(index), dtype), line);
  };
  const ValueId inverse = per_channel(4);
  const ValueId normalized = n.mul(n.sub(n.cast(x, dtype), per_channel(3)), inverse);
  const ValueId upstream = n.cast(dy, dtype);
  const ValueId along = n.mul(normalized, n.mean(n.mul(upstream, normalized), axes));
  const ValueId centred = n.sub(n.sub(upstream, n.mean(upstream, axes)), along);
  const ValueId factor = n.mul(inverse, per_channel(2));
  const auto parameter = [&](ValueId gradient) {
    const ValueId sum = n.reduce(Op::kReduceSum, gradient, axes);
    return n.cast(n.reshape(sum, {line[1]}), n.input_type(2).dtype);
  };
  return {n.cast(n.mul(centred, factor), n.dtype(x)), parameter(n.mul(upstream, normalized)),
          parameter(upstream)};
}

// (shape of the data, indices, dY).
ValueIds lower_gather_gradient(Lowering& n) {
  const Shape shape = n.integers_input(0, "the shape of the data");
  const ValueId indices = n.input(1), dy = n.input(2);
  const ValueId zeros = n.broadcast(n.scalar(n.dtype(dy), 0), shape);
  const int64_t axis = normalized_axis(n.integer("axis", 0), static_cast<int64_t>(shape.size()));
  return {n.add(Op::kScatterAdd, {zeros, indices, dy}, {{"axis", axis}})};
}

// (dY, mask, ratio, training mode).
ValueIds lower_dropout_gradient(Lowering& n) {
  const ValueId dy = n.input(0);
  const bool drops = !n.has_input(3) || n.integer_input(3, "training_mode of DropoutGrad") != 0;
  if (!drops) return {dy};
  const double ratio = n.has_input(2) ? n.real_input(2, "the dropout ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) {
    throw Error("the dropout ratio must be at least 0 and below 1, found " + std::to_string(ratio));
  }
  return {n.where(n.input(1), n.mul_scalar(dy, 1 / (1 - ratio)), n.scalar(n.dtype(dy), 0))};
}

const std::vector<Rule> kRules = {
    {"com.microsoft", "ReluGrad", {1}, lower_relu_gradient},
    {"com.microsoft", "SigmoidGrad", {1}, lower_sigmoid_gradient},
    {"com.microsoft", "TanhGrad", {1}, lower_tanh_gradient},
    {"com.microsoft", "GeluGrad", {1}, lower_activation_gradient<emit_gelu>},
    {"com.microsoft", "BiasGeluGrad_dX", {1}, lower_activation_gradient<emit_gelu>},
    {"com.microsoft", "FastGeluGrad", {1}, lower_activation_gradient<emit_gelu_tanh>},
    {"com.microsoft", "BiasFastGeluGrad_dX", {1}, lower_activation_gradient<emit_gelu_tanh>},
    {"com.microsoft", "QuickGeluGrad", {1}, lower_quick_gelu_gradient},
    {"com.microsoft", "SoftmaxGrad_13", {1}, lower_softmax_gradient},
    {"com.microsoft", "LogSoftmaxGrad_13", {1}, lower_log_softmax_gradient},
    {"com.microsoft", "SoftmaxCrossEntropyLossGrad", {1}, lower_cross_entropy_gradient},
    {"com.microsoft", "SoftmaxCrossEntropyLossInternalGrad", {1}, lower_cross_entropy_gradient},
    {"com.microsoft", "LayerNormalizationGrad", {1}, lower_layer_normalization_gradient<true>},
    {"com.microsoft",
     "SimplifiedLayerNormalizationGrad",
     {1},
     lower_layer_normalization_gradient<false>},
    {"com.microsoft", "BatchNormalizationGrad", {1}, lower_batch_normalization_gradient},
    {"com.microsoft", "GatherGrad", {1}, lower_gather_gradient},
    {"com.microsoft", "DropoutGrad", {1}, lower_dropout_gradient},
};

}  // namespace

std::span<const Rule> gradient_rules() { return kRules; }

}  // namespace sgtc
