#include "passes/prepack_weights.h"

#include "ir/interpret.h"
#include "operators_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

Graph prepacked(const std::string& text) {
  Graph graph = prepack_weights(parse_graph(text));
  verify(graph, "prepack_weights");
  return graph;
}

std::string header(const std::string& rows, int64_t micro_batches, const std::string& type) {
  return "graph \"p\" rows " + rows + " micro_batches " + std::to_string(micro_batches) +
         "\nfeed %x: " + type + "[" + rows + ",3]\nfeed %g: " + type + "[" + rows +
         ",40]\nstate parameter %w: " + type + "[3,40] = normal(0.0, 1.0, seed 1)\n";
}

// A layer's product and that of its input's gradient.
const std::string kLayer =
    "%y = matmul(%x, %w)\n%d = matmul(%g, %w) {transpose_b=1} @backward\n"
    "output \"y\" %y\noutput \"d\" %d\n";
const std::string kAsItWas = "matmul(x w ) matmul(g w ) ";

std::string rewritten(const std::string& text) { return operators_of(prepacked(text)); }

}  // namespace

TEST_CASE("a weight is packed for each way in which many small products read it") {
  const Graph graph = prepacked(header("5", 8, "f32") + kLayer);
  CHECK(operators_of(graph) ==
        "pad(w c ) reshape(pad ) transpose(reshape ) "
        "pad(w c ) reshape(pad_1 ) transpose(reshape_1 ) "
        "matmul(x transpose ) matmul(g transpose_1 ) ");
  for (const Node& node : graph.nodes) {
    CHECK((node.phase == Phase::kSetup) == (node.op != Op::kMatMul));
  }
  CHECK(graph.shape(graph.find("transpose")) == Shape{2, 3, 32});
  CHECK(graph.shape(graph.find("transpose_1")) == Shape{1, 40, 32});
}

TEST_CASE("few products, many rows and types without a kernel leave a weight as it is") {
  CHECK(rewritten(header("5", 7, "f32") + kLayer) == kAsItWas);
  CHECK(rewritten(header("129", 8, "f32") + kLayer) == kAsItWas);
  CHECK(rewritten(header("5", 8, "bf16") + kLayer) == kAsItWas);
  CHECK(rewritten(header("128", 8, "f64") + kLayer) != kAsItWas);
}

TEST_CASE("products of values of a micro-batch stay") {
  CHECK(rewritten(header("5", 8, "f32") +
                  "%t = transpose(%g) {perm=[1,0]}\n%y = matmul(%t, %x)\noutput \"y\" %y\n") ==
        "transpose(g ) matmul(t x ) ");
  CHECK(rewritten(header("5", 8, "f32") + "%e = exp(%w)\n%y = matmul(%x, %e)\noutput \"y\" %y\n") ==
        "exp(w ) matmul(x e ) ");
}

TEST_CASE("the time steps of a recurrent layer count, and movements of its weights are packed") {
  std::string text =
      "graph \"r\" rows 2 micro_batches 2\nfeed %x: f32[2,32]\n"
      "state parameter %w: f32[1,32,32] = normal(0.0, 1.0, seed 1)\n"
      "%m = reshape(%w) {shape=[32,32]}\n%h0 = tanh(%x)\n";
  for (int64_t t = 0; t < 4; ++t) {
    const std::string before = std::to_string(t), after = std::to_string(t + 1);
    text += "%h" + after + " = matmul(%h" + before + ", %m) {transpose_b=1}\n";
  }
  CHECK(rewritten(text + "output \"y\" %h4\n") ==
        "reshape(w ) reshape(reshape ) transpose(reshape_1 ) tanh(x ) matmul(h0 transpose ) "
        "matmul(h1 transpose ) matmul(h2 transpose ) matmul(h3 transpose ) ");
}

TEST_CASE("products of packed weights have the same values in all micro-batches") {
  const std::string text = header("5", 8, "f64") + kLayer;
  std::vector<std::vector<double>> values;
  for (const Graph& graph : {parse_graph(text), prepacked(text)}) {
    Interpreter interpreter(graph);
    for (int64_t m = 0; m < 8; ++m) {
      std::vector<double> x, g;
      for (int64_t i = 0; i < 15; ++i) x.push_back(static_cast<double>(i * (m + 1)));
      for (int64_t i = 0; i < 200; ++i) g.push_back(static_cast<double>(i - 31 * m));
      interpreter.set_feed("x", m, x);
      interpreter.set_feed("g", m, g);
    }
    interpreter.run();
    for (const char* name : {"y", "d"}) {
      std::vector<double> all;
      for (const Tensor& tensor : interpreter.outputs_by_micro_batch(name)) {
        all.insert(all.end(), tensor.reals.begin(), tensor.reals.end());
      }
      values.push_back(all);
    }
  }
  REQUIRE(values.size() == 4);
  CHECK(values[0].size() == 8 * 200);
  CHECK(values[0] == values[2]);
  CHECK(values[1] == values[3]);
}
