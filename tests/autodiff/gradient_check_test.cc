#include "autodiff/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "autodiff/differentiate.h"
#include "autodiff/expressions.h"
#include "ir/interpret.h"
#include "support/catch.h"

namespace sgtc::test {
namespace {

/// A small generator (the constants of Knuth's MMIX) for numbers in [low, high).
class Uniform {
 public:
  explicit Uniform(uint64_t seed) : state_(seed * 2 + 1) {}
  double operator()(double low, double high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (static_cast<double>(state_ >> 11) * 0x1p-53);
  }

 private:
  uint64_t state_;
};

double loss_of(const Graph& graph, const std::map<std::string, Values>& parameters) {
  Interpreter interpreter(graph, Precision::kFloat64);
  for (const auto& [name, values] : parameters) interpreter.set(name, values);
  interpreter.run();
  return interpreter.output(graph.outputs[0].name).at(0);
}

Values to_values(const Tensor& tensor) {
  Values values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
  return values;
}

}  // namespace

Graph with_weighted_loss(Graph graph) {
  Expressions e(graph);
  Uniform uniform(7);
  ValueId loss = kNone;
  for (const Output& output : graph.outputs) {
    std::vector<double> weights(static_cast<size_t>(element_count(graph.shape(output.value))));
    for (double& weight : weights) weight = uniform(0.5, 1.5);
    const ValueId weight = graph.add_constant(
        make_literal(graph.dtype(output.value), graph.shape(output.value), weights));
    const ValueId sum = e.sum_all(e.mul(output.value, weight));
    loss = loss == kNone ? sum : e.add(loss, sum);
  }
  graph.outputs = {{"loss", loss}};
  return graph;
}

std::map<std::string, Values> initial_parameters(const Graph& graph) {
  std::map<std::string, Values> parameters;
  for (ValueId state : graph.states) {
    const Value& value = graph.value(state);
    if (value.role != StateRole::kParameter) continue;
    Values& values = parameters[value.name];
    Uniform uniform(static_cast<uint64_t>(value.initial.seed));
    for (int64_t i = 0; i < element_count(value.type.shape); ++i) {
      const bool is_literal = value.initial.kind == Initializer::Kind::kLiteral;
      values.push_back(is_literal ? value.initial.literal->as_double(i)
                                  : uniform(value.initial.a, value.initial.b));
    }
  }
  return parameters;
}

std::map<std::string, Values> gradients(const Graph& forward) {
  verify(forward, "the test");
  Diagnostics diagnostics;
  Differentiated result = differentiate(forward, diagnostics);
  Graph& graph = result.graph;
  graph.context() = {Phase::kUpdate, 0, {}};
  std::map<std::string, ValueId> sums;
  for (const ParameterGradient& gradient : result.gradients) {
    ValueId sum = gradient.uses[0];
    for (size_t i = 1; i < gradient.uses.size(); ++i) {
      sum = graph.add(Op::kAdd, {sum, gradient.uses[i]});
    }
    CHECK(graph.type(sum) == graph.type(gradient.state));
    sums[graph.value(gradient.state).name] = sum;
  }
  verify(graph, "differentiate");
  Interpreter interpreter(graph, Precision::kFloat64);
  for (const auto& [name, values] : initial_parameters(forward)) interpreter.set(name, values);
  interpreter.run();
  std::map<std::string, Values> found;
  for (const auto& [name, sum] : sums) found[name] = to_values(interpreter.value(sum));
  return found;
}

std::map<std::string, Values> gradients(const std::string& text) {
  return gradients(parse_graph(text));
}

void check_gradients(const std::string& text, double tolerance) {
  INFO(text);
  const Graph forward = with_weighted_loss(parse_graph(text));
  const std::map<std::string, Values> found = gradients(forward);
  std::map<std::string, Values> parameters = initial_parameters(forward);
  constexpr double kStep = 1e-5;
  for (const auto& [name, gradient] : found) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double at = parameters[name][i];
      parameters[name][i] = at + kStep;
      const double above = loss_of(forward, parameters);
      parameters[name][i] = at - kStep;
      const double below = loss_of(forward, parameters);
      parameters[name][i] = at;
      const double expected = (above - below) / (2 * kStep);
      INFO(name << "[" << i << "]");
      CHECK(std::abs(gradient[i] - expected) <= tolerance * (1 + std::abs(expected)));
    }
  }
  CHECK(found.size() == parameters.size());
}

std::optional<double> directional_error(const Graph& forward, std::string& refusal) {
  const Graph weighted = with_weighted_loss(forward);
  std::map<std::string, Values> found;
  try {
    found = gradients(weighted);
  } catch (const Error& error) {
    const std::string reason = error.what();
    if (reason.find("there is nothing to train") == std::string::npos) refusal = reason;
    return std::nullopt;
  }
  const std::map<std::string, Values> at = initial_parameters(weighted);
  if (!std::isfinite(loss_of(weighted, at))) return std::nullopt;
  constexpr double kStep = 1e-6;
  constexpr int kDirections = 3;
  double worst = 0;
  Uniform uniform(13);
  for (int direction = 0; direction < kDirections; ++direction) {
    std::map<std::string, Values> above = at, below = at;
    double derivative = 0;
    for (const auto& [name, gradient] : found) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double step = uniform(-1, 1);
        derivative += gradient[i] * step;
        above[name][i] += kStep * step;
        below[name][i] -= kStep * step;
      }
    }
    const double expected = (loss_of(weighted, above) - loss_of(weighted, below)) / (2 * kStep);
    const double error = std::abs(derivative - expected) / std::max(1.0, std::abs(expected));
    worst = std::isnan(error) ? error : std::max(worst, error);
  }
  return worst;
}

}  // namespace sgtc::test
