#include "autodiff/optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "autodiff/update_phase.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class Optimizer {
 public:
  Optimizer(Graph& graph, const std::vector<ParameterGradient>& gradients,
            const OptimizerOptions& options)
      : graph_(graph),
        options_(options),
        phase_(graph, gradients, options.clip_norm),
        e_(phase_.expressions()) {}

  void run() {
    learning_rate_ = graph_.control("learning_rate");
    if (is_adam() && options_.correct_bias) add_bias_corrections();
    for (TrainedParameter parameter : phase_.trained()) {
      phase_.begin_update_of(parameter.state);
      parameter.gradient = phase_.clipped_gradient(parameter);
      update(parameter);
    }
  }

 private:
  using AdamForm = OptimizerOptions::AdamForm;

  bool is_adam() const { return options_.kind != OptimizerOptions::Kind::kSgd; }

  ValueId in_type_of(const TrainedParameter& parameter, ValueId scalar) {
    return e_.cast(scalar, graph_.dtype(parameter.parameter));
  }

  /// A new moment of the type of the update: what the options hold of it, else zero.
  ValueId add_moment(const TrainedParameter& parameter, const std::string& suffix, size_t index) {
    const std::string& name = graph_.value(parameter.state).name;
    const TensorType type = graph_.type(parameter.parameter);
    const Shape whole = graph_.shape(parameter.state);
    Initializer initial;
    const auto found = options_.moments.find(name);
    if (found != options_.moments.end()) {
      initial.kind = Initializer::Kind::kLiteral;
      initial.literal = found->second.at(index);
      if (initial.literal->dtype() != type.dtype || initial.literal->shape() != whole) {
        throw Error("moment " + std::to_string(index) + " of \"" + name + "\": expected " +
                    std::string(name_of(type.dtype)) + to_string(whole) + ", found " +
                    std::string(name_of(initial.literal->dtype())) +
                    to_string(initial.literal->shape()));
      }
    }
    return graph_.add_state(name + suffix, type, StateRole::kMoment, std::move(initial),
                            parameter.sharded ? whole : Shape{});
  }

  /// beta^t for the applied steps t, as a state; returns 1 - beta^t of this step, f64.
  ValueId bias_correction(const std::string& name, double beta) {
    Initializer past;
    past.kind = Initializer::Kind::kFill;
    past.a = std::pow(beta, static_cast<double>(options_.applied_steps));
    const ValueId state =
        graph_.add_state(name, {DType::kFloat64, {}}, StateRole::kMoment, std::move(past));
    const ValueId power = e_.mul(state, beta);
    phase_.bind(state, power);
    return e_.sub(1.0, power);
  }

  void add_bias_corrections() {
    correction1_ = bias_correction("adam.beta1_power", options_.beta1);
    root_correction2_ = e_.sqrt(bias_correction("adam.beta2_power", options_.beta2));
  }

  bool decays(const TrainedParameter& parameter) const {
    const bool is_excluded = options_.decay_exclude_1d && graph_.shape(parameter.state).size() < 2;
    return options_.weight_decay != 0 && !is_excluded;
  }

  bool decays_apart(const TrainedParameter& parameter) const {
    return decays(parameter) && options_.kind == OptimizerOptions::Kind::kAdamW;
  }

  void update(TrainedParameter& parameter) {
    if (decays(parameter) && !decays_apart(parameter)) {
      const ValueId decay = e_.mul(parameter.parameter, options_.weight_decay);
      parameter.gradient = e_.add(parameter.gradient, decay);
    }
    const ValueId updated = is_adam() ? adam(parameter) : sgd(parameter);
    phase_.bind(parameter, e_.cast(updated, graph_.dtype(parameter.state)));
  }

  ValueId sgd(const TrainedParameter& parameter) {
    ValueId direction = parameter.gradient;
    if (options_.momentum != 0) {
      const ValueId buffer = add_moment(parameter, ".momentum_buffer", 0);
      const ValueId next = e_.add(e_.mul(buffer, options_.momentum), parameter.gradient);
      phase_.bind(buffer, next);
      direction =
          options_.nesterov ? e_.add(parameter.gradient, e_.mul(next, options_.momentum)) : next;
    }
    const ValueId step = e_.mul(direction, in_type_of(parameter, learning_rate_));
    return e_.sub(parameter.parameter, step);
  }

  ValueId adam(const TrainedParameter& parameter) {
    const ValueId g = parameter.gradient;
    const ValueId m = add_moment(parameter, ".exp_avg", 0);
    const ValueId v = add_moment(parameter, ".exp_avg_sq", 1);
    const ValueId next_m = e_.add(e_.mul(m, options_.beta1), e_.mul(g, 1 - options_.beta1));
    const ValueId next_v =
        e_.add(e_.mul(v, options_.beta2), e_.mul(e_.square(g), 1 - options_.beta2));
    phase_.bind(m, next_m);
    phase_.bind(v, next_v);
    const bool moments = options_.form == AdamForm::kCorrectedMoments;
    return moments ? step_by_corrected_moments(parameter, next_m, next_v)
                   : step_at_corrected_rate(parameter, next_m, next_v);
  }

  ValueId step_by_corrected_moments(const TrainedParameter& parameter, ValueId m, ValueId v) {
    const ValueId rate = in_type_of(parameter, learning_rate_);
    ValueId start = parameter.parameter;
    if (decays_apart(parameter)) {
      start = e_.mul(start, e_.sub(1.0, e_.mul(rate, options_.weight_decay)));
    }
    ValueId step_size = rate;
    ValueId root = e_.sqrt(v);
    if (options_.correct_bias) {
      step_size = e_.div(rate, in_type_of(parameter, correction1_));
      root = e_.div(root, in_type_of(parameter, root_correction2_));
    }
    const ValueId direction = e_.div(m, e_.add(root, options_.epsilon));
    return e_.sub(start, e_.mul(step_size, direction));
  }

  ValueId step_at_corrected_rate(const TrainedParameter& parameter, ValueId m, ValueId v) {
    const ValueId rate = in_type_of(parameter, learning_rate_);
    ValueId step_size = rate;
    if (options_.correct_bias) {
      const ValueId correction = e_.div(root_correction2_, correction1_);
      step_size = e_.mul(rate, in_type_of(parameter, correction));
    }
    const ValueId direction = e_.div(m, e_.add(e_.sqrt(v), options_.epsilon));
    const ValueId stepped = e_.sub(parameter.parameter, e_.mul(step_size, direction));
    if (!decays_apart(parameter)) return stepped;
    return e_.sub(stepped, e_.mul(stepped, e_.mul(rate, options_.weight_decay)));
  }

  Graph& graph_;
  const OptimizerOptions& options_;
  UpdatePhase phase_;
  Expressions& e_;
  ValueId learning_rate_ = kNone;
  ValueId correction1_ = kNone;
  ValueId root_correction2_ = kNone;
};

}  // namespace

Graph add_optimizer(Differentiated differentiated, const OptimizerOptions& options) {
  Graph graph = std::move(differentiated.graph);
  Optimizer(graph, differentiated.gradients, options).run();
  graph.context() = {};
  return graph;
}

Graph add_update(Differentiated differentiated, double clip_norm, const UpdateRule& rule) {
  Graph graph = std::move(differentiated.graph);
  UpdatePhase phase(graph, differentiated.gradients, clip_norm);
  std::map<std::string, ValueId> gradients;
  for (const TrainedParameter& parameter : phase.trained()) {
    phase.begin_update_of(parameter.state);
    gradients[graph.value(parameter.state).name] =
        phase.expressions().cast(phase.clipped_gradient(parameter), graph.dtype(parameter.state));
  }
  const std::vector<Update> guarded = graph.updates;
  graph = rule(std::move(graph), gradients);
  const std::vector<Update> given(graph.updates.begin() + static_cast<int64_t>(guarded.size()),
                                  graph.updates.end());
  graph.updates.resize(guarded.size());
  for (const Update& update : given) {
    phase.begin_update_of(update.state);
    phase.bind(update.state, update.value);
  }
  graph.context() = {};
  return graph;
}

}  // namespace sgtc
