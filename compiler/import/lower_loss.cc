// Losses over classes.
#include "import/losses.h"
#include "import/lowering.h"
#include "import/soundness.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

ValueId sum_of_all(Emitter& e, ValueId x) {
  return e.reshape(e.reduce(Op::kReduceSum, x, all_axes(e.rank(x))), {});
}

void check_shapes(Emitter& e, const LikelihoodLoss& loss) {
  const Shape& scores = e.shape(loss.log_probabilities);
  if (scores.size() < 2) {
    throw Error("scores: expected [N, C, …], found " + to_string(scores));
  }
  Shape expected = scores;
  expected.erase(expected.begin() + 1);
  if (e.shape(loss.labels) != expected) {
    throw Error("labels: expected shape " + to_string(expected) + ", found " +
                to_string(e.shape(loss.labels)));
  }
  if (!is_integer(e.dtype(loss.labels))) {
    throw Error("labels: expected integers, found " + std::string(name_of(e.dtype(loss.labels))));
  }
  if (loss.weights != kNone && e.shape(loss.weights) != Shape{scores[1]}) {
    throw Error("weights: expected shape [" + std::to_string(scores[1]) + "], found " +
                to_string(e.shape(loss.weights)));
  }
}

// Weight of each label, or kNone when all count as one.
ValueId label_weights(Emitter& e, const LikelihoodLoss& loss, ValueId labels, ValueId kept,
                      DType dtype) {
  ValueId weights = kNone;
  if (loss.weights != kNone) weights = e.gather(e.cast(loss.weights, dtype), labels, 0);
  if (kept == kNone) return weights;
  if (weights == kNone) return e.cast(kept, dtype);
  return e.where(kept, weights, e.scalar(dtype, 0));
}

LikelihoodLoss attributes_of(Lowering& n) {
  LikelihoodLoss loss;
  loss.labels = n.input(1);
  if (n.has_input(2)) loss.weights = n.input(2);
  if (n.has_attribute("ignore_index")) loss.ignore_index = n.integer("ignore_index", 0);
  loss.reduction = n.text("reduction", "mean");
  return loss;
}

// 16-bit scores give a loss computed in float32.
DType loss_type(DType scores) { return scores == DType::kFloat64 ? scores : DType::kFloat32; }

ValueIds lower_softmax_cross_entropy(Lowering& n) {
  const ValueId scores = n.input(0);
  const DType dtype = n.dtype(scores);
  LikelihoodLoss loss = attributes_of(n);
  // ONNX Runtime's internal form has the ignored label as an input.
  if (n.has_input(3)) loss.ignore_index = n.integer_input(3, "the ignored label");
  loss.log_probabilities = n.add(Op::kLogSoftmax, {n.cast(scores, loss_type(dtype))},
                                 {{"axis", normalized_axis(1, n.rank(scores))}});
  const ValueId value = n.cast(emit_likelihood_loss(n, loss), dtype);
  if (!n.wants_output(1)) return {value};
  return {value, n.cast(loss.log_probabilities, dtype)};
}

ValueIds lower_negative_log_likelihood(Lowering& n) {
  const ValueId scores = n.input(0);
  LikelihoodLoss loss = attributes_of(n);
  if (softmax_behind(n.graph(), scores)) n.state().faults.probabilities.push_back(n.full_name());
  loss.log_probabilities = n.cast(scores, loss_type(n.dtype(scores)));
  return {n.cast(emit_likelihood_loss(n, loss), n.dtype(scores))};
}

const std::vector<Rule> kRules = {
    {"", "SoftmaxCrossEntropyLoss", {12, 13}, lower_softmax_cross_entropy},
    {"", "NegativeLogLikelihoodLoss", {12, 13, 22}, lower_negative_log_likelihood},
    {"com.microsoft", "SoftmaxCrossEntropyLossInternal", {1}, lower_softmax_cross_entropy},
};

}  // namespace

ValueId emit_likelihood_loss(Emitter& e, const LikelihoodLoss& loss) {
  check_shapes(e, loss);
  const DType dtype = e.dtype(loss.log_probabilities);
  const DType label_dtype = e.dtype(loss.labels);
  ValueId labels = loss.labels, kept = kNone;
  if (loss.ignore_index) {
    const ValueId ignored = e.scalar(label_dtype, static_cast<double>(*loss.ignore_index));
    kept = e.add(Op::kNotEqual, {labels, ignored});
    labels = e.where(kept, labels, e.scalar(label_dtype, 0));
  }
  const ValueId picked =
      e.add(Op::kPick, {loss.log_probabilities, e.unsqueeze(labels, {1})}, {{"axis", int64_t{1}}});
  ValueId value = e.neg(e.reshape(picked, e.shape(labels)));
  const ValueId weights = label_weights(e, loss, labels, kept, dtype);
  if (loss.weights != kNone) value = e.mul(value, weights);
  if (kept != kNone) value = e.where(kept, value, e.scalar(dtype, 0));
  if (loss.reduction == "none") return value;
  if (loss.reduction == "sum") return sum_of_all(e, value);
  if (loss.reduction != "mean") {
    throw Error("attribute \"reduction\": expected none, mean or sum, found \"" + loss.reduction +
                "\"");
  }
  const auto count = static_cast<double>(element_count(e.shape(labels)));
  return e.div(sum_of_all(e, value),
               weights == kNone ? e.scalar(dtype, count) : sum_of_all(e, weights));
}

std::span<const Rule> loss_rules() { return kRules; }

}  // namespace sgtc
