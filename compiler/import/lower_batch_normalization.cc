// BatchNormalization.
//
// In training mode a micro-batch is normalized by its own mean and population variance, whatever
// the momentum. The running statistics change once per step: each micro-batch stacks its mean and
// variance, and the update phase applies running·momentum + batch·(1 - momentum) for one
// micro-batch after the other, so that recomputation and the mesh do not change them.
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

enum Input { kX, kScale, kBias, kMean, kVariance };

// ONNX Runtime's form in training graphs, whose last output is the batch's reciprocal deviation.
bool is_internal(Lowering& n) { return n.node().op_type() == "BatchNormInternal"; }

bool is_training(Lowering& n) {
  if (!n.state().training) return false;
  if (is_internal(n)) return n.integer("training_mode", 1) != 0;
  if (n.since() >= 14) return n.integer("training_mode", 0) != 0;
  // Before opset 14, outputs for the statistics ask for training mode.
  return n.wants_output(1) || n.wants_output(2);
}

std::vector<int64_t> axes_but_channels(int64_t rank) {
  std::vector<int64_t> axes = all_axes(rank);
  axes.erase(axes.begin() + 1);
  return axes;
}

// A per-channel input in the statistics' type, shaped to broadcast along dimension 1.
ValueId per_channel(Lowering& n, Input index, DType dtype) {
  const Shape& x = n.input_shape(kX);
  const ValueId value = n.input(index);
  if (n.shape(value) != Shape{x[1]}) {
    throw Error("input " + std::to_string(index) + ": expected shape [" + std::to_string(x[1]) +
                "], found " + to_string(n.shape(value)));
  }
  Shape shape(x.size(), 1);
  shape[1] = x[1];
  return n.reshape(n.cast(value, dtype), shape);
}

ValueId mixed(Lowering& n, ValueId running, ValueId batch, double momentum) {
  return n.add(n.mul_scalar(running, momentum), n.mul_scalar(batch, 1 - momentum));
}

// Stacks `batch` [C] of every micro-batch and binds the update of the state behind `index`.
void update_statistic(Lowering& n, Input index, ValueId batch, double momentum) {
  ImportState& state = n.state();
  const ValueId running = n.input(index);
  if (state.graph.value(running).kind != ValueKind::kState) return;
  const ValueId stacked =
      n.add(Op::kStackMicroBatches, {batch}, {{"micro_batches", state.micro_batches}});
  const auto earlier = state.statistic_updates.find(running);
  ValueId current = earlier == state.statistic_updates.end() ? running : earlier->second;
  state.graph.context().phase = Phase::kUpdate;
  for (int64_t m = 0; m < state.micro_batches; ++m) {
    const ValueId row = n.reshape(n.slice(stacked, 0, m, 1), n.shape(running));
    current = mixed(n, current, n.cast(row, n.dtype(running)), momentum);
  }
  state.graph.context().phase = Phase::kForward;
  state.statistic_updates[running] = current;
}

ValueId reciprocal_deviation(Lowering& n, ValueId variance) {
  return n.add(Op::kRsqrt, {n.add_scalar(variance, n.real("epsilon", 1e-5f))});
}

ValueIds lower_training(Lowering& n, ValueId x, DType dtype) {
  const int64_t channels = n.shape(x)[1];
  const double momentum = n.real("momentum", 0.9f);
  const ValueIds parts =
      n.add_node(Op::kNormalize, {n.cast(x, dtype)},
                 {{"axes", axes_but_channels(n.rank(x))}, {"epsilon", n.real("epsilon", 1e-5f)}});
  ValueId y = n.mul(parts[0], per_channel(n, kScale, dtype));
  y = n.add(y, per_channel(n, kBias, dtype));
  const ValueId mean = n.reshape(parts[1], {channels});
  const ValueId variance = n.reshape(parts[2], {channels});
  update_statistic(n, kMean, mean, momentum);
  update_statistic(n, kVariance, variance, momentum);
  ValueIds outputs{n.cast(y, n.dtype(x))};
  if (n.node().output_size() > 1) {
    const DType mean_dtype = n.input_type(kMean).dtype;
    const DType variance_dtype = n.input_type(kVariance).dtype;
    outputs.push_back(mixed(n, n.input(kMean), n.cast(mean, mean_dtype), momentum));
    outputs.push_back(mixed(n, n.input(kVariance), n.cast(variance, variance_dtype), momentum));
    outputs.push_back(mean);
    outputs.push_back(is_internal(n) ? reciprocal_deviation(n, variance) : variance);
  }
  return outputs;
}

ValueIds lower_inference(Lowering& n, ValueId x, DType dtype) {
  const ValueId deviation = reciprocal_deviation(n, per_channel(n, kVariance, dtype));
  ValueId y = n.mul(n.sub(n.cast(x, dtype), per_channel(n, kMean, dtype)), deviation);
  y = n.mul(y, per_channel(n, kScale, dtype));
  return {n.cast(n.add(y, per_channel(n, kBias, dtype)), n.dtype(x))};
}

ValueIds lower_batch_normalization(Lowering& n) {
  const ValueId x = n.input(kX);
  if (n.rank(x) < 2) throw Error("expected [N, C, …], found " + to_string(n.shape(x)));
  if (n.integer("spatial", 1) == 0) throw Error("spatial=0 is not supported");
  const DType dtype = n.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  for (Input index : {kMean, kVariance}) n.state().statistics.insert(n.input(index));
  if (is_training(n)) return lower_training(n, x, dtype);
  if (n.state().training) n.state().faults.fixed_statistics.push_back(n.full_name());
  return lower_inference(n, x, dtype);
}

const std::vector<Rule> kRules = {
    {"", "BatchNormalization", {7, 9, 14, 15}, lower_batch_normalization},
    {"com.microsoft", "BatchNormInternal", {1}, lower_batch_normalization},
};

}  // namespace

std::span<const Rule> batch_normalization_rules() { return kRules; }

}  // namespace sgtc
