// Normalizations, Dropout and attention.
#include <cmath>

#include "import/helper.h"
#include "import/import.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

std::string batch_norm(const std::string& momentum) {
  return "g (float[2,1,2] x, float[2,1,2] c) => (float loss, float[2,1,2] y) "
         "<float[1] s = {1}, float[1] b = {0}, float[1] mean = {0}, float[1] var = {1}> "
         "{ y, m, v = BatchNormalization <training_mode = 1, momentum = " +
         momentum + "> (x, s, b, mean, var) p = Mul (y, c) loss = ReduceSum <keepdims = 0> (p) }";
}

Graph import_batch_norm(const std::string& momentum, int64_t micro_batches) {
  ImportOptions options;
  options.micro_batches = micro_batches;
  Diagnostics diagnostics;
  Graph graph = import_graph(model_of(batch_norm(momentum)), options, diagnostics);
  verify(graph, "import");
  return graph;
}

}  // namespace

TEST_CASE("BatchNormalization trains on the batch alone and mixes its statistics once") {
  const auto check = [](const std::string& momentum, double mean, double variance) {
    const Graph graph = import_batch_norm(momentum, 1);
    Interpreter interpreter(graph);
    interpreter.set("x", Reals{1, 2, 3, 6});
    interpreter.run();
    const Tensor& y = interpreter.output("y");
    CHECK(close(y.reals, {-1.069043, -0.534522, 0, 1.603565}, 2e-6));
    CHECK(close(interpreter.value("mean").reals, {mean}));
    CHECK(close(interpreter.value("var").reals, {variance}));
  };
  check("0.0", 3, 3.5);
  check("0.9", 0.3, 1.25);
  check("1.0", 0, 1);
}

TEST_CASE("ONNX Runtime's BatchNormInternal trains by default and gives what its gradient needs") {
  const Graph graph = import_text(
      "g (float[2,1,2] x) => (float loss, float[2] both) "
      "<float[1] s = {1}, float[1] b = {0}, float[1] mean = {0}, float[1] var = {1}> "
      "{ y, m, v, k, r = com.microsoft.BatchNormInternal <epsilon = 0.5> (x, s, b, mean, var) "
      "both = Concat <axis = 0> (k, r) p = Mul (y, y) loss = ReduceSum <keepdims = 0> (p) }",
      21, true);
  const Values results = run(graph, {{"x", {1, 2, 3, 6}}});
  CHECK(close(results.at("both"), {3, 0.5}));
  CHECK(close(results.at("loss"), {4 * 3.5 / 4}));
  CHECK(graph.updates.size() == 2);
}

TEST_CASE("BatchNormalization applies its micro-batches in order") {
  const Graph graph = import_batch_norm("0.5", 2);
  Interpreter interpreter(graph);
  interpreter.set_feed("x", 0, {1, 1, 1, 1});
  interpreter.set_feed("x", 1, {4, 4, 4, 4});
  interpreter.run();
  CHECK(close(interpreter.value("mean").reals, {0.5 * 0.5 + 2}));
  CHECK(close(interpreter.value("var").reals, {0.25}));
}

TEST_CASE("BatchNormalization in evaluation uses its running statistics") {
  const Graph graph = import_text(batch_norm("0.9"));
  CHECK(graph.updates.empty());
  CHECK(close(run(graph, {{"x", {1, 2, 3, 6}}, {"c", {1, 1, 1, 1}}}).at("y"), {1, 2, 3, 6}, 1e-5));
}

TEST_CASE("LayerNormalization with one output, no bias and a scale of lower rank") {
  CHECK(close(output_of("g (float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {1, 2}> "
                        "{ y = LayerNormalization <axis = 1> (x, s) }",
                        {{"x", {0, 2, 4, 6}}}),
              {-1.34164, -0.89443, 0.44721, 2.68328}, 1e-5));
}

TEST_CASE("LayerNormalization of float16 with a large variance stays finite") {
  const Reals y = output_of(
      "g (float16[2] x, float16[2] s) => (float16[2] y) { y = LayerNormalization (x, s) }",
      {{"x", {-60000, 60000}}, {"s", {1, 1}}});
  CHECK(close(y, {-1, 1}, 1e-3));
}

TEST_CASE("RMS, group, instance and Lp normalization") {
  const Reals x{3, 4};
  const double rms = std::sqrt(12.5 + 1e-5);
  CHECK(close(output_of("g (float[1,2] x) => (float[1,2] y) <float[2] s = {1, 2}> "
                        "{ y = RMSNormalization (x, s) }",
                        {{"x", x}}, 23),
              {3 / rms, 8 / rms}));
  CHECK(
      close(output_of("g (float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {1, 2}, "
                      "float[2] b = {0, 1}> { y = GroupNormalization <num_groups = 1> (x, s, b) }",
                      {{"x", {-1, -1, 1, 1}}}),
            {-1, -1, 3, 3}, 1e-5));
  CHECK(close(output_of("g (float[1,1,2] x) => (float[1,1,2] y) <float[1] s = {2}, "
                        "float[1] b = {1}> { y = InstanceNormalization (x, s, b) }",
                        {{"x", {-1, 1}}}),
              {-1, 3}, 1e-4));
  CHECK(close(output_of("g (float[2,2] x) => (float[2,2] y) { y = LpNormalization (x) }",
                        {{"x", {3, 4, 0, 0}}}),
              {0.6, 0.8, 0, 0}));
}

TEST_CASE("Dropout keeps the mean, differs by node and passes through in evaluation") {
  const std::string text =
      "g (float[4000] x) => (float loss, float[4000] a, float[4000] b) "
      "<float r = {0.25}, bool t = {1}> "
      "{ a = Dropout <seed = 1> (x, r, t) b = Dropout <seed = 1> (x, r, t) "
      "loss = ReduceMean <keepdims = 0> (a) }";
  const Values ones = {{"x", Reals(4000, 1)}};
  const Values trained = run(import_text(text, 21, true), ones);
  CHECK(trained.at("loss")[0] == Approx(1).margin(0.05));
  CHECK(trained.at("a") != trained.at("b"));
  for (double value : trained.at("a")) CHECK((value == 0 || value == Approx(4.0 / 3)));
  CHECK(run(import_text(text), ones).at("a") == ones.at("x"));
}

TEST_CASE("attention: causal, grouped, masked") {
  // Equal scores everywhere: the output is the mean of the values that a query sees.
  const auto attend = [](const std::string& attributes, const std::string& mask) {
    return output_of(
        "g (float[1,2,2,1] q, float[1,1,2,1] k, float[1,1,2,1] v" +
            std::string(mask.empty() ? "" : ", bool[2,2] m") +
            ") => (float[1,2,2,1] y) "
            "{ y = Attention" +
            attributes + "(q, k, v" + mask + ") }",
        mask.empty() ? Values{{"v", {1, 3}}} : Values{{"v", {1, 3}}, {"m", {0, 1, 0, 0}}}, 23);
  };
  CHECK(close(attend("", ""), {2, 2, 2, 2}));
  CHECK(close(attend(" <is_causal = 1> ", ""), {1, 2, 1, 2}));
  CHECK(close(attend("", ", m"), {3, 0, 3, 0}));
}

TEST_CASE("attention is one operator where nothing shows or changes the scores") {
  const auto is_whole = [](const std::string& attributes, const std::string& mask) {
    const Graph graph = import_text(
        "g (float[1,2,2,1] q, float[1,1,2,1] k, float[1,1,2,1] v, bool[2,2] fed) => "
        "(float[1,2,2,1] y, bool[2,2] unused) <bool[2,2] open = {1, 0, 1, 1}, "
        "bool[2,2] shut = {1, 1, 0, 0}, float[2,2] weight = {1, 2, 3, 4}> { y = Attention" +
            attributes + "(q, k, v" + mask + ") unused = Not (fed) }",
        23);
    return to_text(graph).find(" = attention(") != std::string::npos;
  };
  CHECK(is_whole("", ""));
  CHECK(is_whole(" <is_causal = 1> ", ""));
  CHECK(is_whole("", ", open"));
  CHECK(is_whole("", ", shut"));
  CHECK(is_whole("", ", fed"));
  CHECK(is_whole(" <is_causal = 1> ", ", open"));
  CHECK_FALSE(is_whole("", ", weight"));
  CHECK_FALSE(is_whole(" <softcap = 2.0> ", ""));
  CHECK_FALSE(is_whole(" <softmax_precision = 1> ", ""));
}

TEST_CASE("rotary embedding turns pairs of elements") {
  const std::string attributes = " <num_heads = 1, interleaved = ";
  const auto rotate = [&attributes](const std::string& interleaved) {
    return output_of(
        "g (float[1,1,4] x) => (float[1,1,4] y) <float[1,1,2] c = {0, 1}, "
        "float[1,1,2] s = {1, 0}> { y = RotaryEmbedding" +
            attributes + interleaved + "> (x, c, s) }",
        {{"x", {1, 2, 3, 4}}}, 23);
  };
  CHECK(rotate("0") == Reals{-3, 2, 1, 4});
  CHECK(rotate("1") == Reals{-2, 1, 3, 4});
}
