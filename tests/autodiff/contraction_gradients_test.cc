#include "autodiff/differentiate.h"
#include "autodiff/gradient_check.h"
#include "support/catch.h"

using sgtc::test::check_gradients;

namespace {

std::string two(const std::string& a, const std::string& b, const std::string& expression) {
  return "state parameter %a: f32" + a + " = uniform(-1.0, 1.0, seed 1)\n" +
         "state parameter %b: f32" + b + " = uniform(-1.0, 1.0, seed 2)\n%y = " + expression +
         "\noutput \"y\" %y\n";
}

}  // namespace

TEST_CASE("gradients of matmul with transposes") {
  check_gradients(two("[2,3]", "[3,4]", "matmul(%a, %b)"));
  check_gradients(two("[3,2]", "[3,4]", "matmul(%a, %b) {transpose_a=1}"));
  check_gradients(two("[2,3]", "[4,3]", "matmul(%a, %b) {transpose_b=1}"));
  check_gradients(two("[3,2]", "[4,3]", "matmul(%a, %b) {transpose_a=1, transpose_b=1}"));
}

TEST_CASE("gradients of batched matmul with transposes and broadcast batches") {
  const std::string flags =
      GENERATE("transpose_a=0, transpose_b=0", "transpose_a=1, transpose_b=0",
               "transpose_a=0, transpose_b=1", "transpose_a=1, transpose_b=1");
  const std::string expression = "matmul(%a, %b) {" + flags + "}";
  const std::string a = flags[12] == '1' ? "3,2]" : "2,3]";
  const std::string b = flags[27] == '1' ? "4,3]" : "3,4]";
  check_gradients(two("[5," + a, "[5," + b, expression));
  check_gradients(two("[5," + a, "[" + b, expression));
  check_gradients(two("[2,5," + a, "[1,1," + b, expression));
  check_gradients(two("[" + a, "[5," + b, expression));
  check_gradients(two("[2,1," + a, "[5," + b, expression));
  check_gradients(two("[2,1," + a, "[1,5," + b, expression));
}

TEST_CASE("batches of a product with one matrix are rows of its gradient") {
  sgtc::Graph graph = sgtc::parse_graph(
      "feed %x: f32[4,5,3]\nstate parameter %w: f32[3,2] = zero\n%y = matmul(%x, %w)\n"
      "%l = reduce_sum(%y) {axes=[0,1,2]}\noutput \"loss\" %l\n");
  sgtc::Diagnostics diagnostics;
  auto result = sgtc::differentiate(graph, diagnostics);
  const sgtc::Node& node = *result.graph.producer(result.gradients[0].uses[0]);
  CHECK(node.op == sgtc::Op::kMatMul);
  CHECK(result.graph.shape(node.operands[0]) == sgtc::Shape{20, 3});
}

TEST_CASE("gradients of products with wider results have the operands' type") {
  sgtc::Graph graph = sgtc::parse_graph(
      "feed %x: bf16[4,3]\nstate parameter %w: bf16[3,2] = zero\n"
      "%y = matmul(%x, %w) {result=\"f32\"}\n%l = reduce_sum(%y) {axes=[0,1]}\n"
      "output \"loss\" %l\n");
  sgtc::Diagnostics diagnostics;
  auto result = sgtc::differentiate(graph, diagnostics);
  CHECK(result.graph.dtype(result.gradients[0].uses[0]) == sgtc::DType::kBFloat16);
}

TEST_CASE("gradients of convolutions") {
  check_gradients(
      two("[2,2,5]", "[3,2,3]", "conv(%a, %b) {strides=[2], pads=[1,0], dilations=[1], groups=1}"));
  check_gradients(two("[1,4,5,4]", "[4,2,2,2]",
                      "conv(%a, %b) {strides=[1,2], pads=[1,0,0,1], dilations=[2,1], groups=2}"));
  check_gradients(two("[1,1,3,3,2]", "[2,1,2,2,1]",
                      "conv(%a, %b) {strides=[1,1,1], pads=[0,0,0,0,0,0], dilations=[1,1,1],"
                      " groups=1}"));
}

TEST_CASE("gradients of transposed convolutions") {
  check_gradients(two("[1,1,2]", "[1,1,3]",
                      "conv_input_grad(%a, %b) {strides=[2], pads=[1,0], dilations=[1], groups=1,"
                      " input=[4]}"));
  check_gradients(two("[2,4,2,2]", "[4,1,2,2]",
                      "conv_input_grad(%a, %b) {strides=[2,1], pads=[0,0,0,0], dilations=[1,1],"
                      " groups=2, input=[5,3]}"));
}

TEST_CASE("gradients of pools") {
  const std::string x = "state parameter %x: f32[1,2,5,4] = uniform(-1.0, 1.0, seed 8)\n";
  const std::string window =
      " {kernel=[3,2], strides=[2,1], pads=[1,0,1,1], dilations=[1,1],"
      " output=[3,4]";
  check_gradients(x + "%y = max_pool(%x)" + window + "}\noutput \"y\" %y\n");
  check_gradients(x + "%y = average_pool(%x)" + window + "}\noutput \"y\" %y\n");
  check_gradients(x + "%y = average_pool(%x)" + window +
                  ", count_include_pad=1}\noutput \"y\" %y\n");
}

TEST_CASE("gradients of softmax and log_softmax") {
  const std::string op = GENERATE("softmax", "log_softmax");
  const std::string axis = GENERATE("0", "1", "2");
  check_gradients("state parameter %x: f32[2,3,2] = uniform(-2.0, 2.0, seed 8)\n%y = " + op +
                  "(%x) {axis=" + axis + "}\noutput \"y\" %y\n");
}

TEST_CASE("gradients of normalize, with and without its statistics") {
  const std::string axes = GENERATE("[2]", "[0,2]", "[1]");
  const std::string outputs =
      GENERATE("output \"y\" %y\n", "output \"y\" %y\noutput \"m\" %m\noutput \"v\" %v\n",
               "output \"v\" %v\n");
  check_gradients(
      "state parameter %x: f32[2,3,2] = uniform(-2.0, 2.0, seed 8)\n"
      "%y, %m, %v = normalize(%x) {axes=" +
          axes + ", epsilon=0.01}\n" + outputs,
      1e-5);
}

TEST_CASE("gradients of normalize before a scale by channels or elements") {
  const std::string scale = GENERATE("[1,3,1]", "[1,1,2]", "[3,1]", "[2,3,2]");
  const std::string axes = GENERATE("[0,2]", "[2]");
  check_gradients(
      "state parameter %x: f32[2,3,2] = uniform(-2.0, 2.0, seed 8)\n"
      "state parameter %w: f32" +
          scale +
          " = uniform(-2.0, 2.0, seed 9)\n"
          "%n, %m, %v = normalize(%x) {axes=" +
          axes +
          ", epsilon=0.01}\n"
          "%y = mul(%n, %w)\n"
          "output \"y\" %y\n",
      1e-5);
}

TEST_CASE("gradients of attention with shared key heads") {
  const std::string mask =
      GENERATE("", "constant %mask: f32[3,3] = [0, 1, 0, -1, 0, 2, 0, 0, 1]\n");
  const std::string causal = GENERATE("0", "1");
  const std::string operands = mask.empty() ? "(%q, %k, %v)" : "(%q, %k, %v, %mask)";
  check_gradients(
      "state parameter %q: f32[1,4,3,2] = uniform(-1.0, 1.0, seed 1)\n"
      "state parameter %k: f32[1,2,3,2] = uniform(-1.0, 1.0, seed 2)\n"
      "state parameter %v: f32[1,2,3,5] = uniform(-1.0, 1.0, seed 3)\n" +
          mask + "%o, %m, %sum = attention" + operands + " {scale=0.7, causal=" + causal +
          "}\n"
          "output \"y\" %o\n",
      1e-5);
}

TEST_CASE("normalization over the batch: one element, and the sum of all") {
  const std::string graph =
      "state parameter %x: f32[2,1,2] = literal [1, 2, 3, 6]\n"
      "%y, %m, %v = normalize(%x) {axes=[0,2], epsilon=1e-5}\n";
  auto one = sgtc::test::gradients(graph +
                                   "constant %w: f32[2,1,2] = [1, 0, 0, 0]\n%p = mul(%y, %w)\n"
                                   "%l = reduce_sum(%p) {axes=[0,1,2]}\noutput \"loss\" %l\n");
  const std::vector<double> expected = {0.24817, -0.20999, -0.13363, 0.09545};
  for (size_t i = 0; i < 4; ++i) CHECK(one["x"][i] == Approx(expected[i]).epsilon(1e-4));
  auto all =
      sgtc::test::gradients(graph + "%l = reduce_sum(%y) {axes=[0,1,2]}\noutput \"loss\" %l\n");
  for (size_t i = 0; i < 4; ++i) CHECK(all["x"][i] == Approx(0).margin(1e-12));
}

TEST_CASE("weighted cross-entropy with an ignored label") {
  auto found = sgtc::test::gradients(R"(
state parameter %z: f64[3,2] = literal [1.0986122886681098, 0, 0, 0, 5, -5]
constant %label: i64[3,1] = [0, 1, 0]
constant %weight: f64[3,1] = [1, 3, 0]
constant %total: f64[] = [4]
%lp = log_softmax(%z) {axis=1}
%p = pick(%lp, %label) {axis=1}
%n = neg(%p)
%w = mul(%n, %weight)
%s = reduce_sum(%w) {axes=[0,1]}
%l = div(%s, %total)
output "loss" %l
)");
  const std::vector<double> expected = {-0.0625, 0.0625, 0.375, -0.375, 0, 0};
  for (size_t i = 0; i < 6; ++i) CHECK(found["z"][i] == Approx(expected[i]).margin(1e-12));
}
