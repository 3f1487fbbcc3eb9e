#include "autodiff/take_gradients.h"

#include "autodiff/optimizer.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

// L = sum(w * x), whose gradient x the file calls "w_grad".
constexpr const char* kGiven = R"(
feed %x: f64[2]
state parameter %w: f64[2] = literal [1, -2]
%p = mul(%w, %x)
%s = reduce_sum(%p) {axes=[0]}
%loss = reshape(%s) {shape=[]}
%g = neg(%x) @backward
%g2 = neg(%g) @backward
output "loss" %loss
output "w_grad" %g2
)";

Differentiated take(Graph graph, double scale = 1, const std::string& parameter = "w") {
  Diagnostics diagnostics;
  Differentiated result =
      take_gradients(std::move(graph), {{parameter, "w_grad"}}, scale, diagnostics);
  verify(result.graph, "take_gradients");
  return result;
}

}  // namespace

TEST_CASE("a given gradient is the only use of its parameter and no output") {
  const Differentiated result = take(parse_graph(kGiven));
  REQUIRE(result.gradients.size() == 1);
  REQUIRE(result.gradients[0].uses.size() == 1);
  CHECK(result.graph.value(result.gradients[0].uses[0]).name == "g2");
  CHECK(result.graph.outputs.size() == 1);
}

TEST_CASE("given gradients of several micro-batches are weighted and accumulated") {
  Graph graph = parse_graph(kGiven);
  graph.micro_batches = 2;
  const Differentiated result = take(graph, 0.5);
  const ValueId state = result.graph.find("grad.w.0");
  REQUIRE(state != kNone);
  CHECK(result.graph.value(state).role == StateRole::kAccumulator);
  const Node& total = *result.graph.producer(result.gradients[0].uses[0]);
  CHECK(total.op == Op::kAccumulate);
  CHECK(total.phase == Phase::kBackward);
  CHECK(result.graph.producer(total.operands[1])->op == Op::kMul);
}

TEST_CASE("a given gradient trains as one of sgtc's own") {
  OptimizerOptions options;
  options.kind = OptimizerOptions::Kind::kSgd;
  const Graph graph = add_optimizer(take(parse_graph(kGiven)), options);
  Interpreter interpreter(graph);
  interpreter.set("learning_rate", std::vector<double>{0.5});
  interpreter.set("x", std::vector<double>{3, 4});
  interpreter.run();
  CHECK(interpreter.value("w").reals == std::vector<double>{-0.5, -4});
}

TEST_CASE("gradients of another shape, and of nothing that is trained, are refused") {
  Graph graph = parse_graph(kGiven);
  graph.outputs[1].value = graph.outputs[0].value;
  CHECK_THROWS_WITH(take(graph),
                    ContainsSubstring("gradient of \"w\"") && ContainsSubstring("[2]"));
  CHECK_THROWS_WITH(take(parse_graph(kGiven), 1, "v"),
                    ContainsSubstring("there is nothing to train"));
}
