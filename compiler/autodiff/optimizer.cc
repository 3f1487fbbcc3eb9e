#include "autodiff/optimizer.h"

#include <string>
#include <utility>

#include "autodiff/expressions.h"

namespace sgtc {
namespace {

/// One trained parameter in the dtype of its update.
struct Trained {
  ValueId state = kNone;
  ValueId parameter = kNone;
  ValueId gradient = kNone;
};

class Optimizer {
 public:
  Optimizer(Graph& graph, const OptimizerOptions& options)
      : graph_(graph), options_(options), e_(graph) {}

  void run(const std::vector<ParameterGradient>& gradients) {
    const ValueId loss = graph_.outputs[0].value;
    std::vector<Trained> trained;
    for (const ParameterGradient& gradient : gradients) trained.push_back(widen(gradient));
    at("gradient norm");
    const ValueId norm = global_norm(trained);
    finite_ = graph_.add(Op::kLogicalAnd, {is_finite(norm), is_finite(e_.reshape(loss, {}))}, {},
                         "finite");
    graph_.outputs.push_back({"grad_norm", norm});
    graph_.outputs.push_back({"finite", finite_});
    for (Update& update : graph_.updates) update.value = if_finite(update.state, update.value);
    const bool clips = options_.clip_norm > 0;
    const ValueId scale = clips ? clip_scale(norm) : kNone;
    learning_rate_ = graph_.control("learning_rate");
    if (is_adam()) add_bias_corrections();
    for (Trained& parameter : trained) {
      at(update_of(parameter.state));
      if (clips) parameter.gradient = e_.mul(parameter.gradient, in_type_of(parameter, scale));
      update(parameter);
    }
  }

 private:
  bool is_adam() const { return options_.kind != OptimizerOptions::Kind::kSgd; }

  /// The update phase has no ONNX nodes: `source` names its nodes in plans and traces.
  void at(const std::string& source) { graph_.context() = {Phase::kUpdate, 0, {source}}; }
  std::string update_of(ValueId state) const { return "update of " + graph_.value(state).name; }

  Trained widen(const ParameterGradient& gradient) {
    at(update_of(gradient.state));
    ValueId sum = gradient.uses[0];
    for (size_t i = 1; i < gradient.uses.size(); ++i) sum = e_.add(sum, gradient.uses[i]);
    const bool is_double = graph_.dtype(gradient.state) == DType::kFloat64;
    const DType dtype = is_double ? DType::kFloat64 : DType::kFloat32;
    return {gradient.state, e_.cast(gradient.state, dtype), e_.cast(sum, dtype)};
  }

  ValueId in_type_of(const Trained& parameter, ValueId scalar) {
    return e_.cast(scalar, graph_.dtype(parameter.parameter));
  }

  ValueId global_norm(const std::vector<Trained>& trained) {
    ValueId total = kNone;
    for (const Trained& parameter : trained) {
      const ValueId squares = e_.sum_all(e_.square(parameter.gradient));
      const ValueId term = e_.cast(squares, DType::kFloat32);
      total = total == kNone ? term : e_.add(total, term);
    }
    return graph_.add(Op::kSqrt, {total}, {}, "grad_norm");
  }

  ValueId is_finite(ValueId x) {
    const ValueId is_nan = e_.apply(Op::kIsNan, {x});
    const ValueId is_inf =
        e_.apply(Op::kIsInf, {x}, {{"positive", int64_t{1}}, {"negative", int64_t{1}}});
    return e_.apply(Op::kLogicalNot, {e_.apply(Op::kLogicalOr, {is_nan, is_inf})});
  }

  ValueId clip_scale(ValueId norm) {
    const ValueId ratio = e_.div(options_.clip_norm, e_.add(norm, 1e-6));
    return e_.apply(Op::kMin, {ratio, e_.constant(DType::kFloat32, 1)});
  }

  ValueId if_finite(ValueId state, ValueId value) { return e_.where(finite_, value, state); }

  void bind(ValueId state, ValueId value) {
    graph_.updates.push_back({state, if_finite(state, value)});
  }

  /// A new moment, zero at first, of the type of the update.
  ValueId add_moment(const Trained& parameter, const std::string& suffix) {
    return graph_.add_state(graph_.value(parameter.state).name + suffix,
                            graph_.type(parameter.parameter), StateRole::kMoment, {});
  }

  /// beta^t for the applied steps t, as a state; returns 1 - beta^t of this step, f64.
  ValueId bias_correction(const std::string& name, double beta) {
    Initializer one;
    one.kind = Initializer::Kind::kFill;
    one.a = 1;
    const ValueId state =
        graph_.add_state(name, {DType::kFloat64, {}}, StateRole::kMoment, std::move(one));
    const ValueId power = e_.mul(state, beta);
    bind(state, power);
    return e_.sub(1.0, power);
  }

  void add_bias_corrections() {
    correction1_ = bias_correction("adam.beta1_power", options_.beta1);
    root_correction2_ = e_.sqrt(bias_correction("adam.beta2_power", options_.beta2));
  }

  bool decays(const Trained& parameter) const {
    const bool is_excluded =
        options_.decay_exclude_1d && graph_.shape(parameter.parameter).size() < 2;
    return options_.weight_decay != 0 && !is_excluded;
  }

  void update(Trained& parameter) {
    if (decays(parameter) && options_.kind != OptimizerOptions::Kind::kAdamW) {
      const ValueId decay = e_.mul(parameter.parameter, options_.weight_decay);
      parameter.gradient = e_.add(parameter.gradient, decay);
    }
    const ValueId updated = is_adam() ? adam(parameter) : sgd(parameter);
    bind(parameter.state, e_.cast(updated, graph_.dtype(parameter.state)));
  }

  ValueId sgd(const Trained& parameter) {
    ValueId direction = parameter.gradient;
    if (options_.momentum != 0) {
      const ValueId buffer = add_moment(parameter, ".momentum_buffer");
      const ValueId next = e_.add(e_.mul(buffer, options_.momentum), parameter.gradient);
      bind(buffer, next);
      direction =
          options_.nesterov ? e_.add(parameter.gradient, e_.mul(next, options_.momentum)) : next;
    }
    const ValueId step = e_.mul(direction, in_type_of(parameter, learning_rate_));
    return e_.sub(parameter.parameter, step);
  }

  ValueId adam(const Trained& parameter) {
    const ValueId g = parameter.gradient;
    const ValueId rate = in_type_of(parameter, learning_rate_);
    const ValueId m = add_moment(parameter, ".exp_avg");
    const ValueId v = add_moment(parameter, ".exp_avg_sq");
    const ValueId next_m = e_.add(e_.mul(m, options_.beta1), e_.mul(g, 1 - options_.beta1));
    const ValueId next_v =
        e_.add(e_.mul(v, options_.beta2), e_.mul(e_.square(g), 1 - options_.beta2));
    bind(m, next_m);
    bind(v, next_v);
    ValueId start = parameter.parameter;
    if (decays(parameter) && options_.kind == OptimizerOptions::Kind::kAdamW) {
      start = e_.mul(start, e_.sub(1.0, e_.mul(rate, options_.weight_decay)));
    }
    const ValueId step_size = e_.div(rate, in_type_of(parameter, correction1_));
    const ValueId root = e_.div(e_.sqrt(next_v), in_type_of(parameter, root_correction2_));
    const ValueId direction = e_.div(next_m, e_.add(root, options_.epsilon));
    return e_.sub(start, e_.mul(step_size, direction));
  }

  Graph& graph_;
  const OptimizerOptions& options_;
  Expressions e_;
  ValueId finite_ = kNone;
  ValueId learning_rate_ = kNone;
  ValueId correction1_ = kNone;
  ValueId root_correction2_ = kNone;
};

}  // namespace

Graph add_optimizer(Differentiated differentiated, const OptimizerOptions& options) {
  Graph graph = std::move(differentiated.graph);
  Optimizer(graph, options).run(differentiated.gradients);
  graph.context() = {};
  return graph;
}

}  // namespace sgtc
