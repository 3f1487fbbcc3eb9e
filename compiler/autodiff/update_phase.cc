#include "autodiff/update_phase.h"

#include <utility>

namespace sgtc {

UpdatePhase::UpdatePhase(Graph& graph, const std::vector<ParameterGradient>& gradients,
                         double clip_norm)
    : graph_(graph), e_(graph) {
  const ValueId loss = graph_.outputs[0].value;
  for (const ParameterGradient& gradient : gradients) trained_.push_back(widen(gradient));
  at("gradient norm");
  const ValueId norm = global_norm();
  finite_ =
      graph_.add(Op::kLogicalAnd, {is_finite(norm), is_finite(e_.reshape(loss, {}))}, {}, "finite");
  graph_.outputs.push_back({"grad_norm", norm});
  graph_.outputs.push_back({"finite", finite_});
  for (Update& update : graph_.updates) {
    update.value = e_.where(finite_, update.value, update.state);
  }
  if (clip_norm > 0) scale_ = clip_scale(norm, clip_norm);
}

void UpdatePhase::begin_update_of(ValueId state) { at("update of " + graph_.value(state).name); }

void UpdatePhase::bind(ValueId state, ValueId value) {
  graph_.updates.push_back({state, e_.where(finite_, value, state)});
}

void UpdatePhase::bind(const TrainedParameter& parameter, ValueId value) {
  if (!parameter.sharded) return bind(parameter.state, value);
  const ValueId shard = graph_.add(Op::kShard, {parameter.state}, of_replicas());
  Attributes whole = of_replicas();
  whole.set("shape", graph_.shape(parameter.state));
  const ValueId updated = e_.where(finite_, value, shard);
  graph_.updates.push_back({parameter.state, graph_.add(Op::kGatherShards, {updated}, whole)});
}

Attributes UpdatePhase::of_replicas() const { return {{"replicas", graph_.replicas}}; }

void UpdatePhase::at(const std::string& source) {
  graph_.context() = {Phase::kUpdate, 0, {source}};
}

TrainedParameter UpdatePhase::widen(const ParameterGradient& gradient) {
  begin_update_of(gradient.state);
  ValueId sum = gradient.uses[0];
  for (size_t i = 1; i < gradient.uses.size(); ++i) sum = e_.add(sum, gradient.uses[i]);
  const bool is_double = graph_.dtype(gradient.state) == DType::kFloat64;
  const DType dtype = is_double ? DType::kFloat64 : DType::kFloat32;
  ValueId parameter = gradient.state;
  if (gradient.sharded) parameter = graph_.add(Op::kShard, {parameter}, of_replicas());
  return {gradient.state, e_.cast(parameter, dtype), e_.cast(sum, dtype), gradient.sharded};
}

ValueId UpdatePhase::global_norm() {
  ValueId total = kNone;
  for (const TrainedParameter& parameter : trained_) {
    const ValueId term = sum_of_squares(parameter);
    total = total == kNone ? term : e_.add(total, term);
  }
  if (total == kNone) total = e_.constant(DType::kFloat32, 0);
  return graph_.add(Op::kSqrt, {total}, {}, "grad_norm");
}

ValueId UpdatePhase::sum_of_squares(const TrainedParameter& parameter) {
  // Flat first: the parts that a long sum is cut into need not end where rows do, and squares
  // that are still to be reshaped would be stored.
  const int64_t count = element_count(graph_.shape(parameter.gradient));
  const ValueId squares = e_.sum_all(e_.square(e_.reshape(parameter.gradient, {count})));
  const ValueId sum = e_.cast(squares, DType::kFloat32);
  return parameter.sharded ? graph_.add(Op::kAllReduce, {sum}) : sum;
}

ValueId UpdatePhase::is_finite(ValueId x) {
  const ValueId is_nan = e_.apply(Op::kIsNan, {x});
  const ValueId is_inf =
      e_.apply(Op::kIsInf, {x}, {{"positive", int64_t{1}}, {"negative", int64_t{1}}});
  return e_.apply(Op::kLogicalNot, {e_.apply(Op::kLogicalOr, {is_nan, is_inf})});
}

ValueId UpdatePhase::clip_scale(ValueId norm, double limit) {
  const ValueId ratio = e_.div(limit, e_.add(norm, 1e-6));
  return e_.apply(Op::kMin, {ratio, e_.constant(DType::kFloat32, 1)});
}

ValueId UpdatePhase::clipped_gradient(const TrainedParameter& parameter) {
  if (scale_ == kNone) {
    const DType dtype = graph_.dtype(parameter.gradient);
    return e_.where(finite_, parameter.gradient, e_.constant(dtype, 0));
  }
  return e_.mul(parameter.gradient, e_.cast(scale_, graph_.dtype(parameter.parameter)));
}

}  // namespace sgtc
