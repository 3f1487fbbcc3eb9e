#include "autodiff/differentiate.h"

#include <set>
#include <vector>

#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string error_of(const std::string& text) {
  Diagnostics diagnostics;
  const Graph graph = parse_graph(text);
  try {
    differentiate(graph, diagnostics);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Differentiated differentiate_text(const std::string& text) {
  Diagnostics diagnostics;
  Differentiated result = differentiate(parse_graph(text), diagnostics);
  verify(result.graph, "differentiate");
  return result;
}

constexpr const char* kTied = R"(
graph "tied" rows 2 micro_batches 2
feed %x: f32[2,2]
state parameter %w: f32[2,2] = literal [1, 2, 3, 4]
state accumulator %loss.total: f32[] = zero
%h = matmul(%x, %w) #1 "first"
%y = matmul(%h, %w) {transpose_b=1} #2 "second"
%s = reduce_sum(%y) {axes=[0,1]} #3 "sum"
%l = reshape(%s) {shape=[]} #4 "sum"
%t = accumulate(%loss.total, %l) #5 "sum"
output "loss" %t
)";

}  // namespace

TEST_CASE("a normalization by channels shares its sums with the gradients of scale and bias") {
  const Graph graph = differentiate_text(R"(
graph "channels" rows 2 micro_batches 1
feed %x: f32[2,3,4]
state parameter %p: f32[3,1] = fill(1.0)
state parameter %scale: f32[3,1] = fill(2.0)
state parameter %bias: f32[3,1] = zero
state accumulator %loss.total: f32[] = zero
%z = mul(%x, %p)
%n, %m, %v = normalize(%z) {axes=[0,2], epsilon=1e-5}
%scaled = mul(%n, %scale)
%y = add(%scaled, %bias)
%e = exp(%y)
%s = reduce_sum(%e) {axes=[0,1,2]}
%l = reshape(%s) {shape=[]}
%t = accumulate(%loss.total, %l)
output "loss" %t
)")
                          .graph;
  std::set<std::vector<ValueId>> terms;  // factors, or what is no product
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kReduceSum || node.phase != Phase::kBackward) continue;
    const Node* product = graph.producer(node.operands[0]);
    const bool is_product = product != nullptr && product->op == Op::kMul;
    terms.insert(is_product ? product->operands : node.operands);
  }
  CHECK(terms.size() == 3);  // of the bias, of the scale and of %p
}

TEST_CASE("each use of a parameter is accumulated over micro-batches by itself") {
  Differentiated result = differentiate_text(kTied);
  REQUIRE(result.gradients.size() == 1);
  REQUIRE(result.gradients[0].uses.size() == 2);
  const Graph& graph = result.graph;
  for (size_t use : {0, 1}) {
    const Node& node = *graph.producer(result.gradients[0].uses[use]);
    CHECK(node.op == Op::kAccumulate);
    CHECK(node.phase == Phase::kBackward);
    CHECK(graph.value(node.operands[0]).name == "grad.w." + std::to_string(use));
    CHECK(node.sources == std::vector<std::string>{use == 0 ? "first" : "second"});
  }
}

TEST_CASE("uses of a tied parameter sum to its gradient over all micro-batches") {
  Differentiated result = differentiate_text(kTied);
  Graph& graph = result.graph;
  graph.context() = {Phase::kUpdate, 0, {}};
  const ValueId sum = graph.add(Op::kAdd, result.gradients[0].uses);
  Interpreter interpreter(graph, Precision::kFloat64);
  interpreter.set_feed("x", 0, {1, 0, 0, 1});
  interpreter.set_feed("x", 1, {1, 1, 2, -1});
  interpreter.run();
  // L = s (W W^T) 1 with s = column sums of x over both micro-batches = (4, 1).
  // dL/dW[i][k] = s_i c_k + (s W)_k with c = column sums of W = (4, 6) and s W = (7, 12).
  const Tensor& gradient = interpreter.value(sum);
  CHECK(gradient.reals == std::vector<double>{4 * 4 + 7, 4 * 6 + 12, 4 + 7, 6 + 12});
}

TEST_CASE("with one micro-batch the uses are backward values") {
  Differentiated result = differentiate_text(
      "state parameter %w: f32[] = zero\n%y = exp(%w)\n%l = add(%y, %w)\noutput \"loss\" %l\n");
  REQUIRE(result.gradients[0].uses.size() == 2);
  CHECK(result.graph.producer(result.gradients[0].uses[0])->op == Op::kMul);
  CHECK(result.graph.states.size() == 1);
}

TEST_CASE("backward nodes carry the sources of their forward node and new ids") {
  Differentiated result = differentiate_text(
      "state parameter %w: f32[] = zero\n%y = exp(%w) #7 \"layer/exp\"\noutput \"loss\" %y\n");
  const Node& node = *result.graph.producer(result.gradients[0].uses[0]);
  CHECK(node.sources == std::vector<std::string>{"layer/exp"});
  CHECK(node.id > 7);
  CHECK(node.phase == Phase::kBackward);
}

TEST_CASE("update nodes of the forward graph come after the backward nodes") {
  Differentiated result = differentiate_text(R"(
state parameter %w: f32[] = zero
state statistic %mean: f32[] = zero
%y = exp(%w)
%m = add(%mean, %y) @update
output "loss" %y
update %mean = %m
)");
  CHECK(result.graph.nodes.back().phase == Phase::kUpdate);
  CHECK(result.graph.updates.size() == 1);
}

TEST_CASE("nothing is computed for values that no parameter reaches") {
  Differentiated result = differentiate_text(R"(
feed %x: f32[2,3]
state frozen %f: f32[3,3] = zero
state parameter %w: f32[3,1] = zero
%h = matmul(%x, %f)
%g = tanh(%h)
%y = matmul(%g, %w)
%l = reduce_sum(%y) {axes=[0,1]}
output "loss" %l
)");
  int64_t matmuls = 0;
  for (const Node& node : result.graph.nodes) {
    if (node.phase == Phase::kBackward && node.op == Op::kMatMul) ++matmuls;
  }
  CHECK(matmuls == 1);
}

TEST_CASE("operators without a gradient are all listed, with node names") {
  const std::string text = error_of(R"(
state parameter %w: f32[1,1,3] = zero
%u = reshape(%w) {shape=[1,1,3]}
%a = max_pool_grad(%w, %u) {kernel=[1], strides=[1], pads=[0,0], dilations=[1], output=[3]} #1 "pool_a"
%b = average_pool_grad(%a) {kernel=[1], strides=[1], pads=[0,0], dilations=[1], output=[3], input=[3]} #2 "pool_b"
%c = add(%a, %b)
%l = reduce_sum(%c) {axes=[0,1,2]}
output "loss" %l
)");
  CHECK_THAT(text, ContainsSubstring("pool_a") && ContainsSubstring("max_pool_grad") &&
                       ContainsSubstring("pool_b") && ContainsSubstring("--freeze"));
}

TEST_CASE("an operator without a gradient that no parameter reaches is fine") {
  Differentiated result = differentiate_text(R"(
state parameter %w: f32[3] = zero
state frozen %f: f32[3] = zero
constant %i: i64[1] = [0]
constant %u: f32[1] = [2]
%y = scatter_elements(%f, %i, %u) {axis=0, reduction="max"}
%z = mul(%y, %w)
%l = reduce_sum(%z) {axes=[0]}
output "loss" %l
)");
  CHECK(result.gradients.size() == 1);
}

TEST_CASE("a loss that is not one float is refused") {
  CHECK_THAT(
      error_of("state parameter %w: f32[2] = zero\n%y = exp(%w)\noutput \"out\" %y\n"),
      ContainsSubstring("out") && ContainsSubstring("f32[2]") && ContainsSubstring("--loss"));
  CHECK_THAT(error_of("state parameter %w: f32[1] = zero\n%y = cast(%w) {to=\"i64\"}\n"
                      "output \"out\" %y\n"),
             ContainsSubstring("i64[1]"));
}

TEST_CASE("a graph with nothing to train is refused, an unused parameter is a warning") {
  CHECK_THAT(error_of("state frozen %w: f32[] = zero\n%y = exp(%w)\noutput \"loss\" %y\n"),
             ContainsSubstring("nothing to train"));
  Diagnostics diagnostics;
  const Graph graph = parse_graph(
      "state parameter %w: f32[] = zero\nstate parameter %u: f32[] = zero\n%y = exp(%w)\n"
      "%f = floor(%u)\n%l = add(%y, %f)\noutput \"loss\" %l\n");
  const Differentiated result = differentiate(graph, diagnostics);
  CHECK(result.gradients.size() == 1);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].severity == Severity::kWarning);
  CHECK(diagnostics.all()[0].object == "u");
}

TEST_CASE("the loss may be a parameter itself") {
  Differentiated result =
      differentiate_text("state parameter %w: f32[] = literal [3]\noutput \"loss\" %w\n");
  CHECK(result.gradients.size() == 1);
}
