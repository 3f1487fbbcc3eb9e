// Operators that are gradients of others, against central differences in double.
#include <cmath>

#include "autodiff/differentiate.h"
#include "import/helper.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

OnnxModel model_with_training_domain(const std::string& graph) {
  Diagnostics diagnostics;
  return OnnxModel::from_proto(
      parse_onnx("<ir_version: 10, opset_import: [\"\" : 17, \"com.microsoft\" : 1, "
                 "\"ai.onnx.preview.training\" : 1]>\n" +
                 graph),
      "test.onnx", ".", diagnostics);
}

Graph import_with_gradients(const std::string& text) {
  ImportOptions options;
  options.training = false;
  options.gradients = append_gradients;
  Diagnostics diagnostics;
  Graph graph = import_graph(model_with_training_domain(text), options, diagnostics);
  verify(graph, "import");
  return graph;
}

// What seeds the gradients: the weights dy of the sum of y's elements.
std::vector<double> weights(size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(0.5 + 0.3 * static_cast<double>(i % 4));
  return values;
}

// d(sum of weights * y)/d(inputs[wanted]) by central differences.
std::vector<double> differences(const Graph& forward, Values inputs, const std::string& wanted) {
  constexpr double kStep = 1e-5;
  std::vector<double> gradient;
  for (double& element : inputs.at(wanted)) {
    const double here = element;
    double difference = 0;
    for (const double sign : {1.0, -1.0}) {
      element = here + sign * kStep;
      const std::vector<double> y = run(forward, inputs).at("y");
      const std::vector<double> dy = weights(y.size());
      for (size_t i = 0; i < y.size(); ++i) difference += sign * dy[i] * y[i];
    }
    element = here;
    gradient.push_back(difference / (2 * kStep));
  }
  return gradient;
}

// `forward` has the output y; `backward` has dy among its inputs and the output d<wanted>.
void check_gradient(const std::string& forward, const std::string& backward, const Values& inputs,
                    const std::string& wanted) {
  const Graph graph = import_text(forward, 17);
  Values given = inputs;
  given["dy"] = weights(run(graph, inputs).at("y").size());
  const std::vector<double> found = run(import_with_gradients(backward), given).at("d" + wanted);
  INFO(backward);
  CHECK(close(found, differences(graph, inputs, wanted), 1e-6));
}

const Values kX = {{"x", {0.3, -1.2, 0.7, 2.1, -0.4, 0.9}}};

}  // namespace

TEST_CASE("gradients of ONNX Runtime's activations") {
  const struct {
    const char *forward, *backward;
  } cases[] = {
      {"y = Relu (x)", "dx = com.microsoft.ReluGrad (dy, x)"},
      {"y = Relu (x)", "r = Relu (x) dx = com.microsoft.ReluGrad (dy, r)"},
      {"y = Sigmoid (x)", "r = Sigmoid (x) dx = com.microsoft.SigmoidGrad (dy, r)"},
      {"y = Tanh (x)", "r = Tanh (x) dx = com.microsoft.TanhGrad (dy, r)"},
      {"y = com.microsoft.Gelu (x)", "dx = com.microsoft.GeluGrad (dy, x)"},
      {"y = com.microsoft.BiasGelu (x, x)",
       "s = Add (x, x) h = com.microsoft.GeluGrad (dy, s) "
       "dx = Add (h, h)"},
      {"y = com.microsoft.FastGelu (x)", "dx = com.microsoft.FastGeluGrad (dy, x)"},
      {"y = com.microsoft.QuickGelu <alpha = 1.5> (x)",
       "dx = com.microsoft.QuickGeluGrad <alpha = 1.5> (dy, x)"},
      {"y = com.microsoft.QuickGelu (x)", "dx = com.microsoft.QuickGeluGrad (dy, x)"},
      {"y = Softmax <axis = -1> (x)",
       "r = Softmax <axis = -1> (x) dx = com.microsoft.SoftmaxGrad_13 <axis = -1> (dy, r)"},
      {"y = LogSoftmax <axis = 0> (x)",
       "r = LogSoftmax <axis = 0> (x) dx = com.microsoft.LogSoftmaxGrad_13 <axis = 0> (dy, r)"},
  };
  for (const auto& [forward, backward] : cases) {
    check_gradient(
        "g (double[2, 3] x) => (double[2, 3] y) {" + std::string(forward) + "}",
        "g (double[2, 3] x, double[2, 3] dy) => (double[2, 3] dx) {" + std::string(backward) + "}",
        kX, "x");
  }
}

TEST_CASE("the bias of a fused activation is added before its gradient") {
  Values inputs = kX;
  inputs["b"] = {0.1, -0.2, 0.3};
  for (const std::string name : {"Gelu", "FastGelu"}) {
    check_gradient(
        "g (double[2, 3] x, double[3] b) => (double[2, 3] y) "
        "{ y = com.microsoft." +
            (name == "Gelu" ? "Bias" + name : name) + " (x, b) }",
        "g (double[2, 3] x, double[3] b, double[2, 3] dy) => (double[2, 3] dx) "
        "{ dx = com.microsoft.Bias" +
            name + "Grad_dX (dy, x, b) }",
        inputs, "x");
  }
}

TEST_CASE("the gradient of a cross entropy follows reduction, weights and ignored labels") {
  const Values inputs = {{"x", kX.at("x")}, {"labels", {2, 0}}};
  for (const std::string reduction : {"mean", "sum", "none"}) {
    const std::string shape = reduction == "none" ? "2" : "1";
    const std::string attributes = " <ignore_index = 0, reduction = \"" + reduction + "\"> ";
    const std::string constants = "w = Constant <value = double[3] {0.5, 1.0, 2.0}> () ";
    check_gradient(
        "g (double[2, 3] x, int64[2] labels) => (double[" + shape + "] y) {" + constants +
            "y = SoftmaxCrossEntropyLoss" + attributes + "(x, labels, w) }",
        "g (double[2, 3] x, int64[2] labels, double[" + shape + "] dy) => (double[2, 3] dx) {" +
            constants + "l, p = SoftmaxCrossEntropyLoss" + attributes + "(x, labels, w) " +
            "dx = com.microsoft.SoftmaxCrossEntropyLossGrad" + attributes + "(dy, p, labels, w) }",
        inputs, "x");
  }
}

TEST_CASE("the gradients of a layer normalization") {
  Values inputs = kX;
  inputs["s"] = {0.5, 1.5, -1};
  for (const std::string wanted : {"x", "s"}) {
    check_gradient(
        "g (double[2, 3] x, double[3] s) => (double[2, 3] y) { y = LayerNormalization (x, s) }",
        "g (double[2, 3] x, double[3] s, double[2, 3] dy) => (double[2, 3] dx, double[3] ds) "
        "{ n, m, r = LayerNormalization (x, s) "
        "dx, ds, db = com.microsoft.LayerNormalizationGrad (dy, x, s, m, r) }",
        inputs, wanted);
  }
}

TEST_CASE("the gradients of a normalization that does not centre") {
  Values inputs = kX;
  inputs["s"] = {0.5, 1.5, -1};
  for (const std::string wanted : {"x", "s"}) {
    check_gradient(
        "g (double[2, 3] x, double[3] s) => (double[2, 3] y) "
        "{ y = SimplifiedLayerNormalization (x, s) }",
        "g (double[2, 3] x, double[3] s, double[2, 3] dy) => (double[2, 3] dx, double[3] ds) "
        "{ n, r = SimplifiedLayerNormalization (x, s) "
        "dx, ds = com.microsoft.SimplifiedLayerNormalizationGrad (dy, x, s, r) }",
        inputs, wanted);
  }
}

TEST_CASE("the gradients of a normalization of batches") {
  // The forward form is composed, since its running statistics must be states.
  const Values inputs = {{"x", {0.3, -1.2, 0.7, 2.1, -0.4, 0.9, 1.3, -0.8}}, {"s", {0.5, -1.5}}};
  const std::string statistics =
      "m = ReduceMean <axes = [0, 2], keepdims = 1> (x) c = Sub (x, m) q = Mul (c, c) "
      "v = ReduceMean <axes = [0, 2], keepdims = 1> (q) "
      "e = Constant <value = double {1e-5}> () w = Add (v, e) d = Sqrt (w) r = Reciprocal (d) ";
  for (const std::string wanted : {"x", "s"}) {
    check_gradient(
        "g (double[2, 2, 2] x, double[2] s) => (double[2, 2, 2] y) {" + statistics +
            "n = Mul (c, r) l = Constant <value = int64[3] {1, 2, 1}> () t = Reshape (s, l) "
            "y = Mul (n, t) }",
        "g (double[2, 2, 2] x, double[2] s, double[2, 2, 2] dy) => (double[2, 2, 2] dx, "
        "double[2] ds) {" +
            statistics +
            "p = Constant <value = int64[1] {2}> () k = Reshape (m, p) i = Reshape (r, p) "
            "dx, ds, db = com.microsoft.BatchNormalizationGrad (dy, x, s, k, i) }",
        inputs, wanted);
  }
}

TEST_CASE("the lengths that a concatenation gives split its gradient") {
  const Graph graph = import_with_gradients(
      "g (float[1, 2] a, float[3, 2] b, float[4, 2] dy) => (float[4, 2] y, float[1, 2] da, "
      "float[3, 2] db) { y, l = com.microsoft.ConcatTraining <axis = -2> (a, b) "
      "da, db = com.microsoft.SplitTraining <axis = 0> (dy, l) }");
  const std::vector<double> dy = {1, 2, 3, 4, 5, 6, 7, 8};
  const Values results = run(graph, {{"a", {9, 8}}, {"b", {7, 6, 5, 4, 3, 2}}, {"dy", dy}});
  CHECK(results.at("y") == std::vector<double>{9, 8, 7, 6, 5, 4, 3, 2});
  CHECK(results.at("da") == std::vector<double>{1, 2});
  CHECK(results.at("db") == std::vector<double>{3, 4, 5, 6, 7, 8});
}

TEST_CASE("operators of ONNX Runtime without a rule are refused by name") {
  for (const std::string op : {"FakeQuant", "BitmaskDropout", "MatMulBnb4", "PythonOp"}) {
    ImportOptions options;
    options.training = false;
    const OnnxModel model = model_with_training_domain(
        "g (float[2] x) => (float[2] y) { y = com.microsoft." + op + " (x) }");
    CHECK_THAT(import_error(model, options),
               Catch::Matchers::ContainsSubstring("1 node has an operator that is not supported") &&
                   Catch::Matchers::ContainsSubstring("(" + op + "), domain com.microsoft"));
  }
}

TEST_CASE("the gradients of a convolution") {
  const Values inputs = {{"x", weights(16)}, {"w", {0.4, -0.3, 1.2, 0.8}}};
  for (const std::string wanted : {"x", "w"}) {
    check_gradient(
        "g (double[1, 1, 4, 4] x, double[1, 1, 2, 2] w) => (double[1, 1, 2, 2] y) "
        "{ y = Conv <strides = [2, 2]> (x, w) }",
        "g (double[1, 1, 4, 4] x, double[1, 1, 2, 2] w, double[1, 1, 2, 2] dy) => "
        "(double[1, 1, 4, 4] dx, double[1, 1, 2, 2] dw) "
        "{ dx, dw, db = com.microsoft.ConvGrad <strides = [2, 2]> (dy, x, w) }",
        inputs, wanted);
  }
}

TEST_CASE("gradients of pools, whose shapes are those that the file declares") {
  Values inputs;
  for (int i = 0; i < 40; ++i) inputs["x"].push_back(std::fmod(i * 0.37, 1.9));
  for (const std::string attributes :
       {"kernel_shape = [2, 2]", "kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]",
        "kernel_shape = [2, 3], strides = [2, 2], auto_pad = \"SAME_UPPER\""}) {
    const std::string x = "double[1, 2, 4, 5] x", pool = "Pool <" + attributes + ">";
    const std::string average =
        "g (" + x + ") => (double[n, c, h, w] y) { y = Average" + pool + " (x) }";
    const Graph graph = import_text(average, 17);
    const std::string dy = "double" + to_string(graph.shape(graph.outputs[0].value)) + " dy";
    const std::string grad = "PoolGrad <" + attributes + ">";
    check_gradient(
        average,
        "g (" + x + ", " + dy + ") => (double[1, 2, 4, 5] dx) { dx = Average" + grad + " (dy) }",
        inputs, "x");
    check_gradient("g (" + x + ") => (double[n, c, h, w] y) { y = Max" + pool + " (x) }",
                   "g (" + x + ", " + dy + ") => (double[n, c, 4, 5] dx) { p, i = Max" + pool +
                       " (x) dx = Max" + grad + " (dy, i) }",
                   inputs, "x");
  }
}

TEST_CASE("the gradient of a pool without a declared shape is refused") {
  for (const std::string shape : {"[1, 1, h, 4]", "[4]", ""}) {
    ImportOptions options;
    options.training = false;
    const OnnxModel model =
        model_with_training_domain("g (double[1, 1, 3, 3] dy) => (double" + shape +
                                   " dx) { dx = AveragePoolGrad <kernel_shape = [2, 2]> (dy) }");
    CHECK_THAT(import_error(model, options),
               Catch::Matchers::ContainsSubstring("output \"dx\": expected a declared shape with 4 "
                                                  "dimensions and fixed spatial sizes"));
  }
}

TEST_CASE("the gradients of a lookup and of a dropout") {
  const Values inputs = {{"x", {1, 2, 3, 4, 5, 6}}, {"i", {2, 0, 2}}};
  check_gradient("g (double[3, 2] x, int64[3] i) => (double[3, 2] y) { y = Gather (x, i) }",
                 "g (double[3, 2] x, int64[3] i, double[3, 2] dy) => (double[3, 2] dx) "
                 "{ s = Shape (x) dx = com.microsoft.GatherGrad (s, i, dy) }",
                 inputs, "x");
  const Graph dropout = import_with_gradients(
      "g (float[3] dy, bool[3] mask) => (float[3] dx) { r = Constant <value_float = 0.75> () "
      "t = Constant <value = bool {1}> () dx = com.microsoft.DropoutGrad (dy, mask, r, t) }");
  CHECK(run(dropout, {{"dy", {1, 2, 3}}, {"mask", {1, 0, 1}}}).at("dx") ==
        std::vector<double>{4, 0, 12});
}

TEST_CASE("a product of transposed operands times a number") {
  CHECK(output_of("g (float[2, 1] a, float[2, 1] b) => (float[1, 1] y) "
                  "{ y = com.microsoft.FusedMatMul <transA = 1, alpha = 0.5> (a, b) }",
                  {{"a", {1, 2}}, {"b", {3, 4}}}) == std::vector<double>{5.5});
}

TEST_CASE("a gradient of another shape than its operand is refused") {
  ImportOptions options;
  options.training = false;
  const OnnxModel model = model_with_training_domain(
      "g (float[2, 3] dy, float x, float[3] s, float m, float i) => (float d) "
      "{ d = com.microsoft.LayerNormalizationGrad <axis = -1> (dy, x, s, m, i) }");
  CHECK_THAT(import_error(model, options),
             Catch::Matchers::ContainsSubstring("expected a gradient of the shape of X, [], found "
                                                "[2,3]"));
}
