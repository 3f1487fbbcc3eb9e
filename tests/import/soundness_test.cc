// Warnings about what an exporter lost, and silence where nothing is lost.
#include "import/soundness.h"

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All warnings of a training import, one a line.
std::string warnings_of(const OnnxModel& model, const ImportOptions& options = {}) {
  Diagnostics diagnostics;
  import_graph(model, options, diagnostics);
  std::string text;
  for (const Diagnostic& found : diagnostics.all()) text += found.object + ": " + found.text + "\n";
  return text;
}

std::string warnings_of(const std::string& graph, const ImportOptions& options = {}) {
  return warnings_of(model_of(graph), options);
}

std::string normalization(const std::string& attributes, const std::string& outputs) {
  return R"(
    g (float[2,2,2] x) => (float loss)
    <float[2] scale = {1, 2}, float[2] bias = {1, 2}, float[2] mean = {1, 2}, float[2] var = {1, 2}> {
      y)" +
         outputs + " = BatchNormalization " + attributes + R"( (x, scale, bias, mean, var)
      loss = ReduceSum <keepdims = 0> (y)
    })";
}

std::string lookup(const std::string& values) {
  return "g (int64[2] ids) => (float loss) <float[3,2] table = {" + values + R"(}> {
    rows = Gather (table, ids)
    loss = ReduceSum <keepdims = 0> (rows)
  })";
}

std::string masked(const std::string& op, const std::string& type, const std::string& values) {
  return "g (float[2,2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {\n m = Constant <value "
         "= " +
         type + " {" + values + "}> ()\n y = MatMul (x, w)\n z = " + op +
         "\n s = Softmax (z)\n l = Mul (s, x)\n loss = ReduceSum <keepdims = 0> (l)\n}";
}

}  // namespace

TEST_CASE("a tensor that decides how the model is compiled is not trained") {
  const std::string graph = R"(
    g (float[4] x) => (float loss) <float ratio = {0.5}, float[4] w = {1, 2, 3, 4}, bool on = {1}> {
      y = Mul (x, w)
      d, m = Dropout (y, ratio, on)
      z = Mul (d, ratio)
      loss = ReduceSum <keepdims = 0> (z)
    })";
  CHECK(has(warnings_of(graph),
            "initializer \"ratio\": is not trained: a node needs to know what it holds when the "
            "model is compiled; --freeze ratio says that it is meant so"));
  ImportOptions options;
  options.freeze = {"ratio"};
  CHECK(warnings_of(graph, options).empty());
  options = {};
  options.train = {"ratio", "w"};
  CHECK(has(import_error(model_of(graph), options),
            "--train ratio: the tensor cannot be trained: a node needs to know what it holds"));
}

TEST_CASE("BatchNormalization in inference mode is named") {
  const std::string found = warnings_of(normalization("", ""));
  CHECK(has(found, "node \"y\": BatchNormalization normalizes by its running statistics"));
  CHECK(has(found, "training=TrainingMode.TRAINING"));
  CHECK(warnings_of(normalization("<training_mode = 1>", ", m, v")).empty());
}

TEST_CASE("Dropout that drops nothing is named, many nodes in one line") {
  const auto dropouts = [](const std::string& mode) {
    return "g (float[2] x) => (float loss) <float[2] w = {1, 2}, float half = {0.5}, bool t = {1}> "
           "{\n"
           "h0 = Mul (x, w)\n h1 = Dropout (h0, half" +
           mode + ")\n h2 = Dropout (h1, half" + mode + ")\n h3 = Dropout (h2, half" + mode +
           ")\n h4 = Dropout (h3, half" + mode + ")\n loss = ReduceSum <keepdims = 0> (h4)\n}";
  };
  CHECK(has(warnings_of(dropouts("")),
            "nodes \"h1\", \"h2\", \"h3\" and 1 more: Dropout drops nothing"));
  CHECK(warnings_of(dropouts(", t")).empty());
}

TEST_CASE("a softmax before a loss that applies it") {
  const auto loss = [](const std::string& first, const std::string& last) {
    return "g (float[2,3] x, int64[2] labels) => (float loss) <float[3] w = {1, 2, 3}> {\n"
           "h = Mul (x, w)\n p = " +
           first + " (h)\n loss = " + last + " (p, labels)\n}";
  };
  CHECK(has(warnings_of(loss("Softmax", "SoftmaxCrossEntropyLoss")),
            "node \"loss\": a softmax of what is a softmax already"));
  CHECK(has(warnings_of(loss("Softmax", "NegativeLogLikelihoodLoss")),
            "node \"loss\": the loss expects logarithms of probabilities"));
  CHECK(warnings_of(loss("LogSoftmax", "NegativeLogLikelihoodLoss")).empty());
  CHECK(warnings_of(loss("Identity", "SoftmaxCrossEntropyLoss")).empty());
}

TEST_CASE("equal and transposed copies of trained tensors") {
  const auto copies = [](const std::string& shape, const std::string& values) {
    return "g (float[2,2] x) => (float loss) <float[2,3] a = {1, 2, 3, 4, 5, 6}, float" + shape +
           " b = {" + values + R"(}> {
      y = MatMul (x, a)
      s = ReduceSum <keepdims = 0> (y)
      t = ReduceSumSquare <keepdims = 0> (b)
      loss = Add (s, t)
    })";
  };
  CHECK(has(warnings_of(copies("[2,3]", "1, 2, 3, 4, 5, 6")),
            "initializer \"b\": equals \"a\", and both are trained"));
  CHECK(has(warnings_of(copies("[3,2]", "1, 4, 2, 5, 3, 6")),
            "initializer \"b\": is the transpose of \"a\""));
  CHECK(warnings_of(copies("[3,2]", "1, 2, 3, 4, 5, 6")).empty());
  ImportOptions frozen;
  frozen.freeze = {"b"};
  CHECK(warnings_of(copies("[2,3]", "1, 2, 3, 4, 5, 6"), frozen).empty());
}

TEST_CASE("a tensor behind an operator without gradient") {
  const std::string graph = R"(
    g (float[3] x) => (float loss) <float[3] w = {0.5, 1.5, 2.5}, float[3] v = {1, 2, 3}> {
      above = Greater (x, w)
      kept = Cast <to = 1> (above)
      y = Mul (kept, v)
      loss = ReduceSum <keepdims = 0> (y)
    })";
  CHECK(has(warnings_of(graph), "initializer \"w\": gets no gradient"));
}

TEST_CASE("a row of zeros in a table is taken for padding that would be trained") {
  CHECK(has(warnings_of(lookup("1, 2, 0, 0, 3, 4")), "keep it with --padding-index table=1"));
  CHECK(warnings_of(lookup("1, 2, 0, 1, 3, 4")).empty());
  CHECK(warnings_of(lookup("0, 0, 0, 0, 0, 0")).empty());
  ImportOptions padded;
  padded.padding_index = {{"table", 1}};
  CHECK(warnings_of(lookup("1, 2, 0, 0, 3, 4"), padded).empty());
}

TEST_CASE("masks that were folded from the exporter's batch") {
  CHECK(has(warnings_of(masked("Add (y, m)", "float[1,2]", "0, -1e9")),
            "node \"z\": its constant mask"));
  CHECK(has(warnings_of(masked("Where (m, y, x)", "bool[2,2]", "1, 0, 1, 1")),
            "node \"z\": its constant mask"));
  CHECK(has(warnings_of(masked("Mul (y, m)", "float[2,2]", "0, 2, 2, 2")),
            "node \"z\": its constant mask"));
}

TEST_CASE("a causal mask hides no key from all queries, and is kept") {
  const std::string graph = R"(
    g (float[3,2,2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {
      mask = Constant <value = float[2,2] {0, -1e9, 0, 0}> ()
      y = MatMul (x, w)
      z = Add (y, mask)
      s = Softmax (z)
      l = Mul (s, x)
      loss = ReduceSum <keepdims = 0> (l)
    })";
  CHECK(warnings_of(graph).empty());
}

TEST_CASE("a mask that would be trained") {
  const std::string graph = R"(
    g (float[3,2,2] x) => (float loss) <float[2,2] mask = {0, -1e9, 0, 0}, float[2] w = {1, 2}> {
      y = Mul (x, w)
      z = Add (y, mask)
      s = Softmax (z)
      l = Mul (s, x)
      loss = ReduceSum <keepdims = 0> (l)
    })";
  CHECK(has(warnings_of(graph), "freeze it with --freeze mask"));
  ImportOptions frozen;
  frozen.freeze = {"mask"};
  CHECK(warnings_of(graph, frozen).empty());
}
