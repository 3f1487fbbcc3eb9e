#include "autodiff/optimizer.h"

#include <cmath>
#include <limits>

#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

using Values = std::vector<double>;

/// Gradients are the feeds: L = sum(w * x) + sum(b * y).
constexpr const char* kLinear = R"(
feed %x: f64[1,2]
feed %y: f64[1]
state parameter %w: f64[1,2] = literal [1, -2]
state parameter %b: f64[1] = literal [0.5]
state statistic %seen: f64[1] = zero
%p = mul(%w, %x)
%q = mul(%b, %y)
%s = reduce_sum(%p) {axes=[0,1]}
%s0 = reshape(%s) {shape=[]}
%t = reshape(%q) {shape=[]}
%l = add(%s0, %t)
%n = add(%seen, %y) @update
output "loss" %l
update %seen = %n
)";

Graph training_graph(const OptimizerOptions& options, const char* text = kLinear) {
  Diagnostics diagnostics;
  Graph graph = add_optimizer(differentiate(parse_graph(text), diagnostics), options);
  verify(graph, "add_optimizer");
  return graph;
}

Values state(const Interpreter& interpreter, const std::string& name) {
  return interpreter.value(name).reals;
}

void step(Interpreter& interpreter, double rate, const Values& x, const Values& y) {
  interpreter.set("learning_rate", Values{rate});
  interpreter.set("x", x);
  interpreter.set("y", y);
  interpreter.run();
}

void check_near(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(std::abs(found[i] - expected[i]) <= 1e-12 * (1 + std::abs(expected[i])));
  }
}

OptimizerOptions sgd() {
  OptimizerOptions options;
  options.kind = OptimizerOptions::Kind::kSgd;
  return options;
}

/// The definition of PyTorch's Adam and AdamW for one number.
struct Adam {
  double decay = 0;
  bool decoupled = true;
  double m = 0, v = 0;
  int t = 0;
  double apply(double p, double g, double rate) {
    if (decoupled) {
      p *= 1 - rate * decay;
    } else {
      g += decay * p;
    }
    ++t;
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.999 * v + (1 - 0.999) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8;
    return p - rate / (1 - std::pow(0.9, t)) * m / denominator;
  }
};

}  // namespace

TEST_CASE("SGD subtracts the gradient times the learning rate") {
  const Graph graph = training_graph(sgd());
  Interpreter interpreter(graph, Precision::kFloat64);
  step(interpreter, 0.1, {3, 4}, {12});
  check_near(state(interpreter, "w"), {1 - 0.3, -2 - 0.4});
  check_near(state(interpreter, "b"), {0.5 - 1.2});
  CHECK(interpreter.output("grad_norm").at(0) == Approx(13));
  CHECK(interpreter.output("finite").at(0) == 1);
}

TEST_CASE("SGD adds weight decay to the gradient, of matrices alone on request") {
  OptimizerOptions options = sgd();
  options.weight_decay = 0.5;
  options.decay_exclude_1d = true;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph, Precision::kFloat64);
  step(interpreter, 0.1, {3, 4}, {12});
  check_near(state(interpreter, "w"), {1 - 0.1 * (3 + 0.5), -2 - 0.1 * (4 - 1)});
  check_near(state(interpreter, "b"), {0.5 - 1.2});
  // The norm is that of the gradients, before decay.
  CHECK(interpreter.output("grad_norm").at(0) == Approx(13));
}

TEST_CASE("momentum and Nesterov over three steps") {
  const bool nesterov = GENERATE(false, true);
  OptimizerOptions options = sgd();
  options.momentum = 0.9;
  options.nesterov = nesterov;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph, Precision::kFloat64);
  double b = 0.5;
  double buffer = 0;
  for (double g : {2.0, -1.0, 0.5}) {
    step(interpreter, 0.1, {0, 0}, {g});
    buffer = 0.9 * buffer + g;
    b -= 0.1 * (nesterov ? g + 0.9 * buffer : buffer);
    check_near(state(interpreter, "b"), {b});
    check_near(state(interpreter, "b.momentum_buffer"), {buffer});
  }
}

TEST_CASE("Adam and AdamW over three steps with decay and a changing rate") {
  const bool decoupled = GENERATE(false, true);
  OptimizerOptions options;
  options.kind = decoupled ? OptimizerOptions::Kind::kAdamW : OptimizerOptions::Kind::kAdam;
  options.weight_decay = 0.1;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph, Precision::kFloat64);
  Adam reference{0.1, decoupled};
  double b = 0.5;
  double rate = 0.25;  // exact in f32
  for (double g : {2.0, -1.0, 0.5}) {
    step(interpreter, rate, {1, 1}, {g});
    b = reference.apply(b, g, rate);
    check_near(state(interpreter, "b"), {b});
    check_near(state(interpreter, "b.exp_avg"), {reference.m});
    check_near(state(interpreter, "b.exp_avg_sq"), {reference.v});
    rate /= 2;
  }
  check_near(state(interpreter, "adam.beta1_power"), {std::pow(0.9, 3)});
}

TEST_CASE("clipping is by the global norm, and the norm is printed before it") {
  OptimizerOptions options = sgd();
  options.clip_norm = 1;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph, Precision::kFloat64);
  step(interpreter, 1, {3, 0}, {4});
  const double scale = 1 / (5 + 1e-6);
  CHECK(interpreter.output("grad_norm").at(0) == Approx(5));
  CHECK(state(interpreter, "w")[0] == Approx(1 - 3 * scale).epsilon(1e-7));
  CHECK(state(interpreter, "b")[0] == Approx(0.5 - 4 * scale).epsilon(1e-7));
}

TEST_CASE("gradients below the largest norm are not clipped") {
  OptimizerOptions options = sgd();
  options.clip_norm = 10;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph, Precision::kFloat64);
  step(interpreter, 1, {3, 0}, {4});
  check_near(state(interpreter, "b"), {0.5 - 4});
}

TEST_CASE("a step that is not finite changes no state and the next one goes on") {
  const double bad =
      GENERATE(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  const Graph graph = training_graph({});
  Interpreter interpreter(graph, Precision::kFloat64);
  step(interpreter, 0.1, {1, bad}, {1});
  CHECK(interpreter.output("finite").at(0) == 0);
  check_near(state(interpreter, "w"), {1, -2});
  check_near(state(interpreter, "b"), {0.5});
  check_near(state(interpreter, "b.exp_avg"), {0});
  check_near(state(interpreter, "adam.beta1_power"), {1});
  check_near(state(interpreter, "seen"), {0});
  step(interpreter, 0.25, {1, 1}, {2});
  Adam reference;
  check_near(state(interpreter, "b"), {reference.apply(0.5, 2, 0.25)});
  check_near(state(interpreter, "seen"), {2});
}

TEST_CASE("parameters of 16 bits are updated in f32 and have f32 moments") {
  const Graph graph = training_graph({}, R"(
feed %x: bf16[2]
state parameter %w: bf16[2] = literal [1, 2]
%p = mul(%w, %x)
%l = reduce_sum(%p) {axes=[0]}
output "loss" %l
)");
  CHECK(graph.dtype(graph.find("w.exp_avg")) == DType::kFloat32);
  CHECK(graph.dtype(graph.find("grad_norm")) == DType::kFloat32);
}

TEST_CASE("names of the optimizer's states are those of the parameters") {
  const Graph graph = training_graph({});
  for (const char* name : {"w.exp_avg", "w.exp_avg_sq", "adam.beta1_power", "adam.beta2_power"}) {
    REQUIRE(graph.find(name) != kNone);
    CHECK(graph.value(graph.find(name)).role == StateRole::kMoment);
  }
  CHECK(graph.dtype(graph.find("adam.beta1_power")) == DType::kFloat64);
}

TEST_CASE("Adam that corrects the learning rate decays last and adds epsilon to the raw root") {
  OptimizerOptions options;
  options.form = OptimizerOptions::AdamForm::kCorrectedRate;
  options.epsilon = 0.1;
  options.weight_decay = 0.5;
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph);
  double w = 1, m = 0, v = 0;
  for (int t = 1; t <= 3; ++t) {
    const double g = 3.0 * t, rate = 0.01;
    step(interpreter, rate, {g, 0}, {0});
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double corrected = rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    w -= corrected * m / (std::sqrt(v) + 0.1);
    w -= rate * 0.5 * w;
    CHECK(state(interpreter, "w")[0] == Approx(w).epsilon(1e-7));
  }
}

TEST_CASE("Adam without bias correction has no powers of its betas") {
  OptimizerOptions options;
  options.correct_bias = false;
  options.epsilon = 0;
  const Graph graph = training_graph(options);
  CHECK(graph.find("adam.beta1_power") == kNone);
  Interpreter interpreter(graph);
  step(interpreter, 0.01, {3, 0}, {0});
  CHECK(state(interpreter, "w")[0] == Approx(1 - 0.01 * 0.3 / std::sqrt(0.009)).epsilon(1e-6));
}

TEST_CASE("Adam goes on from given moments") {
  const auto literal = [](double a, double b) {
    return make_literal(DType::kFloat64, {1, 2}, Values{a, b});
  };
  OptimizerOptions options;
  options.epsilon = 0;
  options.applied_steps = 4;
  options.moments["w"] = {literal(2, 2), literal(5, 5)};
  const Graph graph = training_graph(options);
  Interpreter interpreter(graph);
  step(interpreter, 0.01, {3, 0}, {0});
  const double m = 0.9 * 2 + 0.1 * 3, v = 0.999 * 5 + 0.001 * 9;
  const double root = std::sqrt(v / (1 - std::pow(0.999, 5)));
  CHECK(state(interpreter, "w")[0] ==
        Approx(1 - 0.01 / (1 - std::pow(0.9, 5)) * m / root).epsilon(1e-7));
  options.moments["w"] = {literal(2, 2), std::make_shared<Literal>(DType::kFloat64, Shape{2})};
  CHECK_THROWS_WITH(training_graph(options),
                    Catch::Matchers::ContainsSubstring("moment 1 of \"w\""));
}
