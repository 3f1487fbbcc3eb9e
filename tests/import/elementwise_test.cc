#include <cmath>
#include <limits>

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

// The output of "y = OP(x)" for float data.
std::vector<double> unary(const std::string& op, const std::vector<double>& x, int opset = 21) {
  const std::string n = std::to_string(x.size());
  return output_of("g (float[" + n + "] x) => (float[" + n + "] y) { y = " + op + "(x) }",
                   {{"x", x}}, opset);
}

std::vector<double> binary(const std::string& op, const std::string& type,
                           const std::vector<double>& a, const std::vector<double>& b,
                           const std::string& result = "") {
  const std::string n = "[" + std::to_string(a.size()) + "]";
  return output_of("g (" + type + n + " a, " + type + n + " b) => (" +
                       (result.empty() ? type : result) + n + " y) { y = " + op + "(a, b) }",
                   {{"a", a}, {"b", b}});
}

}  // namespace

TEST_CASE("functions of one variable") {
  CHECK(close(unary("Exp", {0, 1}), {1, std::exp(1)}));
  CHECK(close(unary("Log", {1, 2}), {0, std::log(2)}));
  CHECK(close(unary("Sqrt", {4, 2}), {2, std::sqrt(2)}));
  CHECK(close(unary("Reciprocal", {4}), {0.25}));
  CHECK(close(unary("Atan", {1}), {std::atan(1)}));
  CHECK(close(unary("Erf", {0.5}), {std::erf(0.5)}));
  CHECK(close(unary("Sign", {-2, 0, 3}), {-1, 0, 1}));
  CHECK(close(unary("Round", {0.5, 1.5, 2.4}), {0, 2, 2}));
  CHECK(close(unary("Asinh", {1}), {std::asinh(1)}));
}

TEST_CASE("activations") {
  CHECK(close(unary("Relu", {-1, 0, 2}), {0, 0, 2}));
  CHECK(close(unary("Sigmoid", {0, 2}), {0.5, 1 / (1 + std::exp(-2))}));
  CHECK(close(unary("Softplus", {0, 90}), {std::log(2), 90}));
  CHECK(close(unary("LeakyRelu <alpha = 0.1>", {-1, 2}), {-0.1, 2}));
  CHECK(close(unary("Elu <alpha = 2.0>", {-1, 2, 1000}), {2 * std::expm1(-1), 2, 1000}));
  CHECK(close(unary("Celu <alpha = 2.0>", {-1, 2}), {2 * std::expm1(-0.5), 2}));
  CHECK(close(unary("Selu", {-1, 2}),
              {1.05070102214813 * 1.67326319217682 * std::expm1(-1), 2.10140204429627}));
  CHECK(close(unary("HardSigmoid", {-9, 1, 9}), {0, 0.7, 1}));
  CHECK(close(unary("HardSwish", {-9, 1, 9}), {0, 4.0 / 6, 9}));
  CHECK(close(unary("Softsign", {-1, 3}), {-0.5, 0.75}));
  CHECK(close(unary("ThresholdedRelu", {1, 2}), {0, 2}));
  CHECK(close(unary("Shrink <bias = 0.5, lambd = 1.0>", {-2, 0.5, 2}), {-1.5, 0, 1.5}));
  CHECK(close(unary("Mish", {1}), {std::tanh(std::log1p(std::exp(1)))}));
  CHECK(close(unary("Gelu", {1}), {0.5 * (1 + std::erf(std::sqrt(0.5)))}));
  CHECK(close(unary("Gelu <approximate = \"tanh\">", {1}), {0.841191990607477}));
  CHECK(close(unary("Swish <alpha = 2.0>", {1}, 24), {1 / (1 + std::exp(-2))}));
}

TEST_CASE("Elu is exact for small negative arguments") {
  CHECK(close({unary("Elu", {-1e-8})[0] * 1e8}, {-1}, 1e-6));
}

TEST_CASE("functions of ONNX Runtime's domain") {
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2))); };
  CHECK(close(output_of("g (float[2] x, float[2] b) => (float[2] y) "
                        "{ y = com.microsoft.BiasGelu(x, b) }",
                        {{"x", {1, -1}}, {"b", {0.5, 0}}}),
              {gelu(1.5), gelu(-1)}));
  CHECK(close(unary("com.microsoft.FastGelu", {1}), {0.841191990607477}));
}

TEST_CASE("arithmetic and comparison broadcast") {
  CHECK(output_of("g (float[2,1] a, float[1,3] b) => (float[2,3] y) { y = Mul(a, b) }",
                  {{"a", {1, 2}}, {"b", {1, 2, 3}}}) == std::vector<double>{1, 2, 3, 2, 4, 6});
  CHECK(binary("Div", "int64", {7, -7}, {2, 2}) == std::vector<double>{3, -3});
  CHECK(binary("Mod", "int64", {-4, 7, 5}, {3, -3, 3}) == std::vector<double>{2, -2, 2});
  CHECK(binary("Mod <fmod = 1>", "float", {-4, 7}, {3, -3}) == std::vector<double>{-1, 1});
  CHECK(binary("GreaterOrEqual", "float", {1, kNan}, {1, 1}, "bool") == std::vector<double>{1, 0});
  CHECK(binary("BitShift <direction = \"LEFT\">", "uint8", {1, 3}, {2, 1}) ==
        std::vector<double>{4, 6});
  CHECK(binary("BitwiseXor", "int32", {6, 5}, {3, 5}) == std::vector<double>{5, 0});
}

TEST_CASE("variadic operators") {
  const Values inputs = {{"a", {1, 5}}, {"b", {2, 4}}, {"c", {3, 3}}};
  const auto result = [&inputs](const std::string& op) {
    return output_of(
        "g (float[2] a, float[2] b, float[2] c) => (float[2] y) { y = " + op + "(a, b, c) }",
        inputs);
  };
  CHECK(result("Sum") == std::vector<double>{6, 12});
  CHECK(result("Mean") == std::vector<double>{2, 4});
  CHECK(result("Max") == std::vector<double>{3, 5});
  CHECK(result("Min") == std::vector<double>{1, 3});
}

TEST_CASE("Clip with an omitted bound and with min above max") {
  const Values x = {{"x", {-2, 0.5, 3, 8}}};
  CHECK(output_of("g (float[4] x) => (float[4] y) <float six = {6}> { y = Clip(x, , six) }", x,
                  13) == std::vector<double>{-2, 0.5, 3, 6});
  CHECK(output_of("g (float[4] x) => (float[4] y) <float lo = {3}, float hi = {1}> "
                  "{ y = Clip(x, lo, hi) }",
                  x, 13) == std::vector<double>{1, 1, 1, 1});
}

TEST_CASE("casts of NaN agree when folded and when computed") {
  const std::string body = "{ r = Sqrt(x) b = Cast <to = 9> (r) y = Cast <to = 1> (b) }";
  const std::vector<double> expected{1, 0, 1};
  CHECK(output_of("g (float[3] x) => (float[3] y) " + body, {{"x", {-1, 0, 4}}}) == expected);
  CHECK(output_of("g () => (float[3] y) { x = Constant <value_floats = [-1.0, 0.0, 4.0]> () " +
                  body.substr(1)) == expected);
}

TEST_CASE("NaN and infinity are found") {
  CHECK(output_of("g (float[2] x) => (float[2] y) <float zero = {0}> "
                  "{ n = IsNaN(x) y = Where(n, zero, x) }",
                  {{"x", {kNan, 1}}}) == std::vector<double>{0, 1});
  CHECK(output_of("g (float[3] x) => (bool[3] y) { y = IsInf <detect_negative = 0> (x) }",
                  {{"x", {kInfinity, -kInfinity, 1}}}) == std::vector<double>{1, 0, 0});
}

TEST_CASE("Hardmax before opset 13 flattens from its axis on") {
  const std::string text = "g (float[1,2,2] x) => (float[1,2,2] y) { y = Hardmax(x) }";
  const std::vector<double> x = {3, 1, 2, 4};
  CHECK(output_of(text, {{"x", x}}, 11) == std::vector<double>{0, 0, 0, 1});
  CHECK(output_of(text, {{"x", x}}, 13) == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("Softmax before opset 13 flattens from its axis on") {
  const std::string text = "g (float[1,2,2] x) => (float[1,2,2] y) { y = Softmax(x) }";
  CHECK(close(output_of(text, {{"x", {0, 0, 0, 0}}}, 11), {0.25, 0.25, 0.25, 0.25}));
  CHECK(close(output_of(text, {{"x", {0, 0, 0, 0}}}, 13), {0.5, 0.5, 0.5, 0.5}));
}
