#include "passes/mixed_precision.h"

#include <cmath>
#include <map>

#include "autodiff/differentiate.h"
#include "ir/interpret.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_compositions.h"
#include "passes/fuse.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

// The nodes of the rewritten graph: names of results with types, operators, operands.
std::string nodes_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += graph.value(node.results[0]).name + ':' +
            std::string(name_of(graph.dtype(node.results[0]))) + " = " +
            std::string(name_of(node.op));
    for (const ValueId operand : node.operands) text += ' ' + graph.value(operand).name;
    text += '\n';
  }
  return text;
}

std::string narrowed(const std::string& text) {
  const Graph graph = mixed_precision(parse_graph(text));
  verify(graph, "mixed_precision");
  return nodes_of(graph);
}

// Two micro-batches forward and backward, and the sums of gradients as outputs "d.<parameter>".
Graph step_of(const std::string& forward) {
  Diagnostics diagnostics;
  Differentiated step = differentiate(parse_graph(forward), diagnostics);
  step.graph.context().phase = Phase::kUpdate;
  for (const ParameterGradient& gradient : step.gradients) {
    ValueId sum = gradient.uses[0];
    for (size_t i = 1; i < gradient.uses.size(); ++i) {
      sum = step.graph.add(Op::kAdd, {sum, gradient.uses[i]});
    }
    step.graph.outputs.push_back(
        {"d." + step.graph.value(gradient.state).name, step.graph.add(Op::kNeg, {sum})});
  }
  return eliminate_dead_nodes(eliminate_common_subexpressions(expand_compositions(step.graph)));
}

// Embedding, norm, two layers with a residual, norm, tied scores, cross-entropy; 16 rows.
const std::string kBlock =
    "graph \"block\" rows 2 micro_batches 2\n"
    "feed %i: i64[2,8]\nfeed %labels: i64[2,8,1]\n"
    "state parameter %e: f32[20,16] = uniform(-1.0, 1.0, seed 1)\n"
    "state parameter %g: f32[16] = uniform(0.5, 1.5, seed 2)\n"
    "state parameter %w: f32[16,64] = uniform(-0.5, 0.5, seed 3)\n"
    "state parameter %b: f32[64] = uniform(-0.5, 0.5, seed 4)\n"
    "state parameter %v: f32[64,16] = uniform(-0.5, 0.5, seed 5)\n"
    "%x = gather(%e, %i) {axis=0}\n"
    "%n, %mean, %variance = normalize(%x) {axes=[2], epsilon=1e-05}\n"
    "%s = mul(%n, %g)\n%p = matmul(%s, %w)\n%h = add(%p, %b)\n"
    "%t = tanh(%h)\n%a = mul(%t, %h)\n%q = matmul(%a, %v)\n%r = add(%x, %q)\n"
    "%n2, %mean2, %variance2 = normalize(%r) {axes=[2], epsilon=1e-05}\n"
    "%z = matmul(%n2, %e) {transpose_b=1}\n%l = log_softmax(%z) {axis=2}\n"
    "%k = pick(%l, %labels) {axis=2}\n%total = reduce_sum(%k) {axes=[0,1,2]}\n"
    "%loss = neg(%total)\noutput \"loss\" %loss\n";

std::map<std::string, Tensor> outputs_of(const Graph& graph, Precision precision) {
  Interpreter interpreter(graph, precision);
  interpreter.set("i", std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 19, 18, 0});
  interpreter.set("labels", std::vector<double>{2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 18, 0, 1});
  interpreter.run();
  std::map<std::string, Tensor> outputs;
  for (const Output& output : graph.outputs) {
    outputs.emplace(output.name, interpreter.output(output.name));
  }
  return outputs;
}

}  // namespace

TEST_CASE("products take bf16 operands and give f32 sums, which end rounded") {
  CHECK(narrowed("feed %x: f32[4,3]\nstate parameter %w: f32[3,5] = zero\n"
                 "state parameter %v: f32[5,2] = zero\nstate parameter %b: f32[5] = zero\n"
                 "%p = matmul(%x, %w)\n%s = add(%p, %b)\n%t = tanh(%s)\n"
                 "%y = matmul(%t, %v)\noutput \"y\" %y\n") ==
        "x.bf16:bf16 = cast x\n"
        "w.bf16:bf16 = cast w\n"
        "p:f32 = matmul x.bf16 w.bf16\n"
        "s:f32 = add p b\n"
        "t:f32 = tanh s\n"
        "t.bf16:bf16 = cast t\n"
        "v.bf16:bf16 = cast v\n"
        "y:f32 = matmul t.bf16 v.bf16\n");
}

TEST_CASE("what moves is rounded before it moves") {
  CHECK(narrowed("feed %x: f32[4,3]\nstate parameter %w: f32[3,4] = zero\n"
                 "state parameter %v: f32[2,5] = zero\n%p = matmul(%x, %w)\n"
                 "%r = reshape(%p) {shape=[2,2,4]}\n%t = transpose(%r) {perm=[2,0,1]}\n"
                 "%u = transpose(%v) {perm=[1,0]}\n%y = matmul(%t, %u) {transpose_b=1}\n"
                 "output \"y\" %y\n") ==
        "x.bf16:bf16 = cast x\n"
        "w.bf16:bf16 = cast w\n"
        "p:bf16 = matmul x.bf16 w.bf16\n"
        "r:bf16 = reshape p\n"
        "t:bf16 = transpose r\n"
        "u:f32 = transpose v\n"
        "v.bf16:bf16 = cast v\n"
        "u.bf16:bf16 = transpose v.bf16\n"
        "y:f32 = matmul t u.bf16\n");
}

TEST_CASE("what a later kernel reads is rounded once and widened for each use") {
  CHECK(narrowed("feed %x: f32[4,64]\nstate parameter %w: f32[64,64] = zero\n"
                 "%p = matmul(%x, %w)\n%m = reduce_max(%p) {axes=[1]}\n%d = sub(%p, %m)\n"
                 "%y = exp(%d)\noutput \"y\" %y\n") ==
        "x.bf16:bf16 = cast x\n"
        "w.bf16:bf16 = cast w\n"
        "p:bf16 = matmul x.bf16 w.bf16\n"
        "p.f32:f32 = cast p\n"
        "m:f32 = reduce_max p.f32\n"
        "p.f32_1:f32 = cast p\n"
        "d:f32 = sub p.f32_1 m\n"
        "y:f32 = exp d\n");
}

TEST_CASE("products of feeds and constants alone stay f32") {
  const std::string text =
      "feed %positions: f32[8,1]\nfeed %frequencies: f32[1,4]\n"
      "%angles = matmul(%positions, %frequencies)\n%c = cos(%angles)\noutput \"c\" %c\n";
  CHECK(narrowed(text) == "angles:f32 = matmul positions frequencies\nc:f32 = cos angles\n");
}

TEST_CASE("products of other types than f32 stay as they are") {
  CHECK(narrowed("feed %x: f64[4,3]\nstate parameter %w: f64[3,5] = zero\n%y = matmul(%x, %w)\n"
                 "output \"y\" %y\n") == "y:f64 = matmul x w\n");
}

TEST_CASE("attention takes bf16 and keeps its statistics in f32") {
  CHECK(narrowed("feed %x: f32[1,2,4,8]\nstate parameter %s: f32[8] = zero\n%q = mul(%x, %s)\n"
                 "%y, %m, %n = attention(%q, %q, %q) {scale=0.5, causal=1}\n"
                 "%dq, %dk, %dv = attention_grad(%q, %q, %q, %y, %m, %n, %q) "
                 "{scale=0.5, causal=1} @backward\noutput \"dq\" %dq\n") ==
        "q:f32 = mul x s\n"
        "q.bf16:bf16 = cast q\n"
        "y:bf16 = attention q.bf16 q.bf16 q.bf16\n"
        "dq:bf16 = attention_grad q.bf16 q.bf16 q.bf16 y m n q.bf16\n"
        "dq.f32:f32 = cast dq\n");
}

TEST_CASE("pools are bf16 where their images are") {
  const std::string pool =
      "{kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], output=[2,2]}";
  CHECK(narrowed("feed %x: f32[1,2,4,4]\nstate parameter %w: f32[2,2,1,1] = zero\n"
                 "%c = conv(%x, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1}\n"
                 "%y = max_pool(%c) " +
                 pool + "\n%z = max_pool(%x) " + pool + "\noutput \"y\" %y\noutput \"z\" %z\n") ==
        "x.bf16:bf16 = cast x\n"
        "w.bf16:bf16 = cast w\n"
        "c:bf16 = conv x.bf16 w.bf16\n"
        "y:bf16 = max_pool c\n"
        "z:f32 = max_pool x\n"
        "y.f32:f32 = cast y\n");
}

TEST_CASE("a step keeps the types of results and rounds no gradient of a parameter") {
  const Graph graph = mixed_precision(step_of(kBlock));
  verify(graph, "mixed_precision");
  REQUIRE(graph.outputs.size() == 6);
  for (const Output& output : graph.outputs) {
    CHECK(graph.dtype(output.value) == DType::kFloat32);
    CHECK(graph.producer(output.value)->op != Op::kCast);
  }
}

TEST_CASE("products of a step write bf16, but for sums of gradients and a tanh kept as it is") {
  const Graph graph = mixed_precision(step_of(kBlock));
  std::string wide;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (group.anchor == kNone || graph.node(group.anchor).op != Op::kMatMul) continue;
    for (const ValueId id : group.outputs) {
      if (graph.dtype(id) != DType::kBFloat16) wide += to_string(graph.shape(id)) + ' ';
    }
  }
  CHECK(wide == "[2,8,64] [20,16] [64,16] [16,64] ");
}

TEST_CASE("losses and gradients are those of f64 within the precision of bf16") {
  const Graph wide = step_of(kBlock);
  const Graph graph = mixed_precision(wide);
  const std::map<std::string, Tensor> exact = outputs_of(wide, Precision::kFloat64);
  for (const auto& [name, found] : outputs_of(graph, Precision::kNative)) {
    const std::vector<double>& expected = exact.at(name).reals;
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += std::pow(found.reals[i] - expected[i], 2);
      norm += expected[i] * expected[i];
    }
    INFO(name);
    CHECK(std::sqrt(error / norm) < 0.01);
  }
}

TEST_CASE("without rounding the rewritten step computes the same") {
  const Graph wide = step_of(kBlock);
  const Graph graph = mixed_precision(wide);
  const std::map<std::string, Tensor> exact = outputs_of(wide, Precision::kFloat64);
  for (const auto& [name, found] : outputs_of(graph, Precision::kFloat64)) {
    INFO(name);
    for (size_t i = 0; i < found.reals.size(); ++i) {
      CHECK(found.reals[i] == Approx(exact.at(name).reals[i]).epsilon(1e-9).margin(1e-9));
    }
  }
}
