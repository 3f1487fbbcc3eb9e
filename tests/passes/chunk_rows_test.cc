// What is computed for some rows after others, and that it gives the same values.
#include "passes/chunk_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autodiff/differentiate.h"
#include "ir/interpret.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_compositions.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

Graph chunked(const Graph& graph, int64_t count) {
  Graph result = chunk_rows(graph, count);
  verify(result, "chunk_rows");
  return result;
}

// How many products there are with results of this many elements per row.
int64_t products(const Graph& graph, int64_t width) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.op == Op::kMatMul && graph.shape(node.results[0]).back() == width;
  });
}

// The bytes of the largest value that nodes compute.
int64_t largest(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes) {
    const TensorType& type = graph.type(node.results[0]);
    bytes = std::max(bytes, element_count(type.shape) * size_of(type.dtype));
  }
  return bytes;
}

// The step of a forward graph with the sums of gradients as outputs "d.<parameter>".
Graph step_of(const std::string& forward) {
  Diagnostics diagnostics;
  Differentiated step = differentiate(parse_graph(forward), diagnostics);
  step.graph.context().phase = Phase::kUpdate;
  for (const ParameterGradient& gradient : step.gradients) {
    step.graph.outputs.push_back({"d." + step.graph.value(gradient.state).name,
                                  step.graph.add(Op::kNeg, {gradient.uses[0]})});
  }
  return eliminate_dead_nodes(eliminate_common_subexpressions(expand_compositions(step.graph)));
}

// Cross-entropy of 8 rows over 80 classes, with a bias and a scaled loss.
std::string classes(const std::string& header) {
  return header +
         "feed %x: f32[2,4,5]\nfeed %labels: i64[2,4,1]\n"
         "state parameter %w: f32[80,5] = uniform(-1.0, 1.0, seed 1)\n"
         "state parameter %b: f32[80] = uniform(-0.5, 0.5, seed 2)\n"
         "state parameter %k: f32[5,5] = uniform(-0.5, 0.5, seed 3)\n"
         "%h = matmul(%x, %k)\n"
         "%p = matmul(%h, %w) {transpose_b=1}\n%z = add(%p, %b)\n%l = log_softmax(%z) {axis=2}\n"
         "%g = pick(%l, %labels) {axis=2}\n%total = reduce_sum(%g) {axes=[0,1,2]}\n"
         "constant %c: f32[] = [-0.125]\n%loss = mul(%total, %c)\noutput \"loss\" %loss\n";
}

std::map<std::string, std::vector<double>> outputs_of(const Graph& graph) {
  Interpreter interpreter(graph, Precision::kFloat64);
  std::vector<double> x(40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  interpreter.set("x", x);
  interpreter.set("labels", std::vector<double>{3, 79, 0, 41, 41, 7, 12, 60});
  interpreter.run();
  std::map<std::string, std::vector<double>> outputs;
  for (const Output& output : graph.outputs) {
    outputs[output.name] = interpreter.output(output.name).reals;
  }
  return outputs;
}

void check_equal(const Graph& a, const Graph& b) {
  const auto expected = outputs_of(a), found = outputs_of(b);
  REQUIRE(expected.size() == found.size());
  for (const auto& [name, values] : expected) {
    INFO(name);
    REQUIRE(found.count(name) == 1);
    REQUIRE(found.at(name).size() == values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(found.at(name)[i] == Approx(values[i]).margin(1e-12));
    }
  }
}

bool stays(const std::string& text) {
  const Graph graph = parse_graph(text);
  return to_text(chunked(graph, 2)) == to_text(graph);
}

}  // namespace

TEST_CASE("scores, loss and gradients of rows are computed in chunks with the same values") {
  const Graph step = step_of(classes(""));
  const int64_t count = GENERATE(2, 3, 8, 100);
  const Graph parts = chunked(step, count);
  const int64_t chunks = count == 3 ? 3 : std::min<int64_t>(count, 8);
  CHECK(products(step, 80) == 1);
  CHECK(products(parts, 80) == chunks);
  CHECK(largest(step) == 8 * 80 * 4);
  CHECK(largest(parts) == std::max<int64_t>((8 + count - 1) / count, 5) * 80 * 4);
  check_equal(step, parts);
}

TEST_CASE("micro-batches accumulate what their chunks give") {
  const Graph step = step_of(classes("graph \"g\" rows 2 micro_batches 3\n"));
  check_equal(step, chunked(step, 4));
}

TEST_CASE("forward and backward of a chunk are in the backward phase, and the loss follows") {
  const Graph parts = chunked(step_of(classes("")), 2);
  for (const Node& node : parts.nodes) {
    if (parts.value(node.results[0]).name == "h") CHECK(node.phase == Phase::kForward);
    if (parts.shape(node.results[0]) == Shape{4, 80}) CHECK(node.phase == Phase::kBackward);
  }
  CHECK(parts.producer(parts.outputs[0].value)->phase == Phase::kBackward);
}

TEST_CASE("an evaluation is split in the forward phase") {
  const Graph forward = expand_compositions(parse_graph(classes("")));
  const Graph parts = chunked(forward, 2);
  CHECK(products(parts, 80) == 2);
  for (const Node& node : parts.nodes) CHECK(node.phase == Phase::kForward);
  check_equal(forward, parts);
}

TEST_CASE("a second split leaves chunks alone") {
  const Graph parts = chunked(step_of(classes("")), 2);
  CHECK(products(chunked(parts, 1), 80) == 2);
}

TEST_CASE("gradients of narrow products are added up in single precision") {
  const Graph step = parse_graph(
      "feed %h: bf16[4,2]\nstate parameter %w: bf16[16,2] = zero\n"
      "%z = matmul(%h, %w) {transpose_b=1}\n%e = exp(%z)\n"
      "%d = matmul(%e, %h) {transpose_a=1} @backward\noutput \"d\" %d\n");
  const Graph parts = chunked(step, 2);
  for (const Node& node : parts.nodes) {
    if (node.op == Op::kAdd) CHECK(parts.dtype(node.results[0]) == DType::kFloat32);
  }
  CHECK(parts.dtype(parts.outputs[0].value) == DType::kBFloat16);
}

TEST_CASE("rows stay together where all scores are needed at once") {
  const std::string scores =
      "feed %h: f32[6,2]\nstate parameter %w: f32[32,2] = zero\n"
      "%z = matmul(%h, %w) {transpose_b=1}\n";
  CHECK(stays(scores + "output \"z\" %z\n"));
  CHECK(stays(scores + "%s = reduce_max(%z) {axes=[0]}\n%y = sub(%z, %s)\n"
                       "%t = reduce_sum(%y) {axes=[1]}\noutput \"t\" %t\n"));
  CHECK(stays(scores + "%r = reshape(%z) {shape=[4,48]}\n%t = reduce_sum(%r) {axes=[1]}\n"
                       "output \"t\" %t\n"));
  CHECK(stays(scores + "%r = transpose(%z) {perm=[1,0]}\n%t = reduce_sum(%r) {axes=[0]}\n"
                       "output \"t\" %t\n"));
  // A sum over all rows that each row needs.
  CHECK(stays(scores + "%s = reduce_sum(%z) {axes=[0,1]}\n%y = div(%z, %s)\n"
                       "%t = reduce_sum(%y) {axes=[1]}\noutput \"t\" %t\n"));
}

TEST_CASE("rows stay together where results are not much narrower than scores") {
  CHECK(
      stays("feed %h: f32[6,2]\nstate parameter %w: f32[32,2] = zero\n"
            "state parameter %v: f32[32,5] = zero\n%z = matmul(%h, %w) {transpose_b=1}\n"
            "%e = exp(%z)\n%y = matmul(%e, %v)\noutput \"y\" %y\n"));
}

namespace {

// Scores of a vocabulary, the sum of their exponentials, and the gradient of the weight.
Graph scores(int64_t rows, int64_t width, const std::string& more = "") {
  const std::string n = std::to_string(rows), v = std::to_string(width);
  return parse_graph("feed %h: f32[" + n + ",64]\nstate parameter %w: f32[" + v +
                     ",64] = zero\n%z = matmul(%h, %w) {transpose_b=1}\n%e = exp(%z)\n"
                     "%y = reduce_sum(%e) {axes=[1]}\n"
                     "%d = matmul(%e, %h) {transpose_a=1} @backward\n" +
                     more + "output \"y\" %y\noutput \"d\" %d\n");
}

}  // namespace

TEST_CASE("scores are split as far as products of chunks keep their speed") {
  CHECK(choose_row_chunks(scores(1024, 5000), kCpuTarget) == 4);
  CHECK(choose_row_chunks(scores(700, 5000), kCpuTarget) == 2);
  CHECK(choose_row_chunks(scores(511, 5000), kCpuTarget) == 1);
  CHECK(choose_row_chunks(scores(5000, 5000), kCpuTarget) == 4);
  CHECK(choose_row_chunks(scores(5000, 5000), kHopperTarget) == 1);
}

TEST_CASE("scores are not split where something else needs more memory") {
  const std::string large =
      "%b = broadcast(%h) {shape=[400,1024,64]} @backward\n"
      "%l = matmul(%b, %k) @backward\n"
      "%r = reduce_sum(%l) {axes=[0,1,2]} @backward\noutput \"r\" %r\n";
  const std::string k = "state parameter %k: f32[64,64] = zero\n";
  CHECK(choose_row_chunks(scores(1024, 5000, k + large), kCpuTarget) == 1);
}
