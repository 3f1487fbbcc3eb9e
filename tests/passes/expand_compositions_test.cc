#include "passes/expand_compositions.h"

#include <algorithm>
#include <cmath>

#include "autodiff/differentiate.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

int64_t compositions_in(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) count += info(node.op).kind == OpKind::kComposition ? 1 : 0;
  return count;
}

/// All outputs before and after, in double, for states and feeds set to a fixed pattern.
void check_equal(const Graph& graph, const Graph& expanded) {
  Interpreter before(graph, Precision::kFloat64);
  Interpreter after(expanded, Precision::kFloat64);
  std::vector<ValueId> leaves = graph.states;
  leaves.insert(leaves.end(), graph.feeds.begin(), graph.feeds.end());
  for (const ValueId state : leaves) {
    const Value& value = graph.value(state);
    std::vector<double> values(static_cast<size_t>(element_count(value.type.shape)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(1.3 * static_cast<double>(i) + static_cast<double>(state));
    }
    before.set(value.name, values);
    after.set(value.name, values);
  }
  before.run();
  after.run();
  for (const Output& output : graph.outputs) {
    INFO(output.name);
    const Tensor& expected = before.output(output.name);
    const Tensor& found = after.output(output.name);
    REQUIRE(found.type == expected.type);
    for (int64_t i = 0; i < expected.count(); ++i) {
      CHECK(found.at(i) == Approx(expected.at(i)).epsilon(1e-9).margin(1e-9));
    }
  }
}

/// The same for a target without kernels of attention in single precision.
void check_same(const Graph& graph) {
  const Graph expanded = expand_compositions(graph, kHopperTarget);
  verify(expanded, "expand_compositions");
  CHECK(compositions_in(expanded) == 0);
  check_equal(graph, expanded);
}

}  // namespace

TEST_CASE("softmax and log_softmax open along any axis") {
  const std::string op = GENERATE("softmax", "log_softmax");
  const std::string axis = GENERATE("0", "1");
  check_same(parse_graph("state parameter %x: f32[3,4] = zero\n%y = " + op + "(%x) {axis=" + axis +
                         "}\noutput \"y\" %y\n"));
}

TEST_CASE("normalize opens with its statistics") {
  const std::string axes = GENERATE("[1]", "[0,2]");
  check_same(
      parse_graph("state parameter %x: f32[2,3,4] = zero\n"
                  "%y, %m, %v = normalize(%x) {axes=" +
                  axes +
                  ", epsilon=0.125}\n"
                  "output \"y\" %y\noutput \"m\" %m\noutput \"v\" %v\n"));
}

TEST_CASE("large logits do not overflow and large offsets do not cancel") {
  const Graph graph = expand_compositions(parse_graph(R"(
constant %x: f32[2] = [1000, 999]
constant %z: f32[4] = [4096.25, 4096.5, 4096.75, 4097]
%p = softmax(%x) {axis=0}
%y, %m, %v = normalize(%z) {axes=[0], epsilon=0.0}
output "p" %p
output "v" %v
)"));
  Interpreter interpreter(graph);
  interpreter.run();
  CHECK(interpreter.output("p").at(0) == Approx(1 / (1 + std::exp(-1))));
  CHECK(interpreter.output("v").at(0) == 0.078125);
}

TEST_CASE("half precision is widened inside") {
  const Graph graph = expand_compositions(parse_graph(
      "state parameter %x: bf16[3,4] = zero\n%y = softmax(%x) {axis=1}\noutput \"y\" %y\n"));
  verify(graph, "expand_compositions");
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kExp) CHECK(graph.dtype(node.results[0]) == DType::kFloat32);
  }
  CHECK(graph.dtype(graph.outputs[0].value) == DType::kBFloat16);
}

TEST_CASE("attention is kept on CPUs and sm_80") {
  const Graph graph = parse_graph(
      "state parameter %q: f32[1,2,3,4] = zero\n%o, %m, %l = attention(%q, %q, %q) {scale=0.5}\n"
      "output \"o\" %o\n");
  CHECK(compositions_in(expand_compositions(graph)) == 1);
  CHECK(compositions_in(expand_compositions(graph, kAmpereTarget)) == 1);
}

TEST_CASE("attention and its gradient open, with shared key heads, mask and causality") {
  const std::string mask = GENERATE("",
                                    "constant %mask: f32[3,5] = [0, 1, 0, -1, 0, 2, 0, 0, 1, 0,"
                                    " 1, 1, 0, 0, -2]\n",
                                    "constant %mask: f32[3,1] = [0, -inf, 0]\n");
  const std::string causal = GENERATE("0", "1");
  const std::string zero_empty = mask.find("inf") == std::string::npos ? "0" : "1";
  const std::string operands = mask.empty() ? "(%q, %k, %v)" : "(%q, %k, %v, %mask)";
  const Graph forward = parse_graph(
      "state parameter %q: f32[2,4,3,2] = zero\nstate parameter %k: f32[2,2,5,2] = zero\n"
      "state parameter %v: f32[2,2,5,3] = zero\n" +
      mask + "%o, %m, %sum = attention" + operands + " {scale=0.75, zero_empty=" + zero_empty +
      ", causal=" + causal +
      "}\n%s = mul(%o, %o)\n"
      "%l = reduce_sum(%s) {axes=[0,1,2,3]}\noutput \"loss\" %l\noutput \"m\" %m\noutput \"sum\" "
      "%sum\n");
  Diagnostics diagnostics;
  Differentiated result = differentiate(forward, diagnostics);
  for (const ParameterGradient& gradient : result.gradients) {
    result.graph.outputs.push_back(
        {"d" + result.graph.value(gradient.state).name, gradient.uses[0]});
  }
  check_same(result.graph);
}

namespace {

Graph bf16_attention(const std::string& size, const std::string& mask) {
  const std::string operands = mask.empty() ? "(%q, %k, %v)" : "(%q, %k, %v, %mask)";
  Diagnostics diagnostics;
  Differentiated result = differentiate(
      parse_graph("state parameter %q: bf16[2,4,70," + size + "] = zero\n" +
                  "state parameter %k: bf16[2,2,5," + size + "] = zero\n" +
                  "state parameter %v: bf16[2,2,5,16] = zero\n" + mask +
                  "%o, %m, %sum = attention" + operands + " {scale=0.75}\n" +
                  "%s = mul(%o, %o)\n%l = reduce_sum(%s) {axes=[0,1,2,3]}\noutput \"loss\" %l\n"),
      diagnostics);
  for (const ParameterGradient& gradient : result.gradients) {
    result.graph.outputs.push_back(
        {"d" + result.graph.value(gradient.state).name, gradient.uses[0]});
  }
  return result.graph;
}

int64_t count_of(const Graph& graph, Op op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op == op; });
}

}  // namespace

TEST_CASE("on sm_90a the gradient of attention becomes two halves with the same results") {
  const std::string mask = GENERATE("", "feed %mask: bf16[2,1,1,5]\n", "feed %mask: bf16[70,5]\n");
  const Graph graph = bf16_attention("8", mask);
  const Graph halved = expand_compositions(graph, kHopperTarget);
  verify(halved, "expand_compositions");
  CHECK(count_of(halved, Op::kAttention) == 1);
  CHECK(count_of(halved, Op::kAttentionGrad) == 0);
  CHECK(count_of(halved, Op::kAttentionQueryGrad) == 1);
  CHECK(count_of(halved, Op::kAttentionKeyGrad) == 1);
  check_equal(graph, halved);
}

TEST_CASE("attention opens on sm_90a where its kernels do not fit") {
  const std::string size = GENERATE("12", "136");
  const Graph opened = expand_compositions(bf16_attention(size, ""), kHopperTarget);
  CHECK(compositions_in(opened) == 0);
  const std::string mask = "feed %mask: bf16[70,1]\n";
  CHECK(compositions_in(expand_compositions(bf16_attention("8", mask), kHopperTarget)) == 0);
}
