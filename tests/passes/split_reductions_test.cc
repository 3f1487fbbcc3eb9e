#include "passes/split_reductions.h"

#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string reduction(const std::string& shape, const std::string& op, const std::string& axes) {
  return "feed %x: f32" + shape + "\n%y = " + op + "(%x) {axes=" + axes + "}\noutput \"y\" %y\n";
}

int64_t reductions_in(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) count += info(node.op).kind == OpKind::kReduction ? 1 : 0;
  return count;
}

Graph split_text(const std::string& text) {
  Graph graph = split_reductions(parse_graph(text));
  verify(graph, "split_reductions");
  return graph;
}

std::vector<double> run(const Graph& graph, const std::vector<double>& x) {
  Interpreter interpreter(graph, Precision::kFloat64);
  interpreter.set("x", x);
  interpreter.run();
  return interpreter.output("y").reals;
}

}  // namespace

TEST_CASE("large reductions with few results are split") {
  CHECK(reductions_in(split_text(reduction("[70000]", "reduce_sum", "[0]"))) == 2);
  CHECK(reductions_in(split_text(reduction("[300,300]", "reduce_max", "[0,1]"))) == 2);
  CHECK(reductions_in(split_text(reduction("[2,300,300]", "reduce_sum", "[1,2]"))) == 2);
  CHECK(reductions_in(split_text(reduction("[300,300,3]", "reduce_sum", "[0,1]"))) == 2);
}

TEST_CASE("small reductions, many results and separate dimensions are left alone") {
  CHECK(reductions_in(split_text(reduction("[65536]", "reduce_sum", "[0]"))) == 1);
  CHECK(reductions_in(split_text(reduction("[64,70000]", "reduce_sum", "[1]"))) == 1);
  CHECK(reductions_in(split_text(reduction("[300,3,300]", "reduce_sum", "[0,2]"))) == 1);
}

TEST_CASE("for a GPU many columns are split, and rows as on a CPU") {
  const auto count = [](const std::string& shape, const std::string& axes) {
    const Graph graph = parse_graph(reduction(shape, "reduce_sum", axes));
    return reductions_in(split_reductions(graph, kGpuReductionSplit));
  };
  CHECK(count("[32768,768]", "[0]") == 2);
  CHECK(count("[2048,768]", "[0]") == 1);
  CHECK(count("[32768,16384]", "[0]") == 1);
  CHECK(count("[64,50304]", "[1]") == 1);
  CHECK(count("[63,50304]", "[1]") == 2);
}

TEST_CASE("a split reduction has the same value, with and without padding") {
  const std::string op = GENERATE("reduce_sum", "reduce_max", "reduce_min", "reduce_prod");
  const int64_t size = GENERATE(65540, 65537);  // 65537 is prime
  const std::string text = reduction("[" + std::to_string(size) + "]", op, "[0]");
  std::vector<double> x(static_cast<size_t>(size), 1);
  x[5] = -2;
  x[static_cast<size_t>(size) - 1] = 4;
  CHECK(run(split_text(text), x) == run(parse_graph(text), x));
}

TEST_CASE("kept dimensions on both sides stay in place") {
  const std::string text = reduction("[2,66000,3]", "reduce_sum", "[1]");
  std::vector<double> x(2 * 66000 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 17);
  const Graph graph = split_text(text);
  CHECK(graph.shape(graph.outputs[0].value) == Shape{2, 1, 3});
  CHECK(run(graph, x) == run(parse_graph(text), x));
}
