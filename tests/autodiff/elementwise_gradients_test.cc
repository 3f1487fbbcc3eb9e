#include <cmath>
#include <limits>

#include "autodiff/gradient_check.h"
#include "support/catch.h"

using sgtc::test::check_gradients;
using sgtc::test::gradients;
using sgtc::test::Values;

namespace {

struct Unary {
  const char* op;
  const char* low;
  const char* high;
};

std::string unary_text(const Unary& unary) {
  return std::string("state parameter %x: f32[2,3] = uniform(") + unary.low + ", " + unary.high +
         ", seed 3)\n%y = " + unary.op + "(%x)\noutput \"y\" %y\n";
}

std::string binary_text(const std::string& op, const std::string& a, const std::string& b) {
  return "state parameter %a: f32" + a + " = uniform(0.5, 2.5, seed 1)\n" +
         "state parameter %b: f32" + b + " = uniform(0.6, 1.7, seed 2)\n" + "%y = " + op +
         "(%a, %b)\noutput \"y\" %y\n";
}

}  // namespace

TEST_CASE("gradients of elementwise operators with one operand") {
  const Unary unary = GENERATE(
      Unary{"neg", "-1.0", "1.0"}, Unary{"abs", "-2.0", "-0.1"}, Unary{"abs", "0.1", "2.0"},
      Unary{"exp", "-2.0", "2.0"}, Unary{"log", "0.2", "3.0"}, Unary{"sqrt", "0.2", "3.0"},
      Unary{"rsqrt", "0.2", "3.0"}, Unary{"reciprocal", "0.3", "2.0"},
      Unary{"reciprocal", "-2.0", "-0.3"}, Unary{"sin", "-3.0", "3.0"}, Unary{"cos", "-3.0", "3.0"},
      Unary{"tan", "-1.2", "1.2"}, Unary{"asin", "-0.9", "0.9"}, Unary{"acos", "-0.9", "0.9"},
      Unary{"atan", "-3.0", "3.0"}, Unary{"sinh", "-2.0", "2.0"}, Unary{"cosh", "-2.0", "2.0"},
      Unary{"tanh", "-2.0", "2.0"}, Unary{"asinh", "-3.0", "3.0"}, Unary{"acosh", "1.2", "4.0"},
      Unary{"atanh", "-0.9", "0.9"}, Unary{"erf", "-2.0", "2.0"}, Unary{"sigmoid", "-4.0", "4.0"},
      Unary{"softplus", "-4.0", "4.0"});
  check_gradients(unary_text(unary));
}

TEST_CASE("piecewise constant operators give no gradient") {
  const std::string op = GENERATE("floor", "ceil", "round", "sign");
  auto found = gradients(
      "state parameter %x: f32[2] = literal [0.3, 0.7]\n"
      "%s = " +
      op +
      "(%x)\n%t = add(%s, %x)\n%l = reduce_sum(%t) {axes=[0]}\n"
      "output \"loss\" %l\n");
  CHECK(found["x"] == Values{1, 1});
}

TEST_CASE("gradients of binary operators undo broadcasting") {
  const std::string op = GENERATE("add", "sub", "mul", "div", "pow", "max", "min", "fmod", "mod");
  check_gradients(binary_text(op, "[2,3]", "[2,3]"));
  check_gradients(binary_text(op, "[2,1]", "[1,3]"));
  check_gradients(binary_text(op, "[3]", "[2,3]"));
  check_gradients(binary_text(op, "[2,2,3]", "[1,3]"));
  check_gradients(binary_text(op, "[]", "[2,1]"));
  check_gradients(binary_text(op, "[1,1]", "[1]"));
}

TEST_CASE("an operand used twice gets both contributions") {
  check_gradients(
      "state parameter %x: f32[2] = literal [1.5, -2]\n"
      "%y = mul(%x, %x)\n%z = add(%y, %x)\noutput \"y\" %z\n");
}

TEST_CASE("gradients of remainders with negative operands") {
  const std::string op = GENERATE("fmod", "mod");
  check_gradients(
      "state parameter %a: f32[4] = literal [5.3, -5.3, 5.3, -5.3]\n"
      "state parameter %b: f32[4] = literal [2.1, 2.1, -2.1, -2.1]\n"
      "%y = " +
      op + "(%a, %b)\noutput \"y\" %y\n");
}

TEST_CASE("where gives the branch that is not taken exactly zero") {
  check_gradients(
      "state parameter %a: f32[2,2] = uniform(0.5, 2.0, seed 1)\n"
      "state parameter %b: f32[2] = uniform(0.5, 2.0, seed 2)\n"
      "constant %c: bool[2,1] = [1, 0]\n"
      "%y = where(%c, %a, %b)\noutput \"y\" %y\n");
  auto found = gradients(
      "state parameter %x: f32[2] = literal [0, 4]\n"
      "constant %zero: f32[] = [0]\n"
      "%c = greater(%x, %zero)\n%root = sqrt(%x)\n"
      "%y = where(%c, %root, %x)\n%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(std::isnan(found["x"][0]));  // 0 upstream times the infinite slope of the root at 0
  CHECK(found["x"][1] == 0.25);
}

TEST_CASE("cast gives the gradient in the operand's type") {
  check_gradients(
      "state parameter %x: f32[2] = literal [0.25, 0.5]\n"
      "%w = cast(%x) {to=\"f64\"}\n%y = mul(%w, %w)\noutput \"y\" %y\n");
}

TEST_CASE("ties of max and min go to the first operand") {
  const std::string op = GENERATE("max", "min");
  auto found = gradients(
      "state parameter %a: f32[] = literal [1]\nstate parameter %b: f32[] = literal [1]\n"
      "%l = " +
      op + "(%a, %b)\noutput \"loss\" %l\n");
  CHECK(found["a"] == Values{1});
  CHECK(found["b"] == Values{0});
}

TEST_CASE("relu has gradient 0 at 0, -0 and below, 1 above") {
  auto found = gradients(
      "state parameter %x: f32[4] = literal [0, -0.0, -1e-40, 1e-40]\n"
      "constant %zero: f32[] = [0]\n%y = max(%x, %zero)\n"
      "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{0, 0, 0, 1});
}

TEST_CASE("abs has gradient 0 at 0") {
  auto found = gradients(
      "state parameter %x: f32[3] = literal [-2, 0, 3]\n%y = abs(%x)\n"
      "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{-1, 0, 1});
}

TEST_CASE("clip with the lower bound above the upper one") {
  auto found = gradients(
      "state parameter %x: f32[4] = literal [-2, 0.5, 3, 8]\n"
      "state parameter %low: f32[] = literal [3]\nstate parameter %high: f32[] = literal [1]\n"
      "%m = max(%x, %low)\n%y = min(%m, %high)\n"
      "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{0, 0, 0, 0});
  CHECK(found["low"] == Values{0});
  CHECK(found["high"] == Values{4});
}

namespace {

std::string power_text(const std::string& factor) {
  return "state parameter %b: f32[5] = literal [0, 0, 0, -2, 0]\n"
         "state parameter %e: f32[5] = literal [0, 1, 2, 2, 0.5]\n"
         "constant %f: f32[] = [" +
         factor +
         "]\n"
         "%p = pow(%b, %e)\n%y = mul(%p, %f)\n"
         "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n";
}

}  // namespace

TEST_CASE("power at a zero and at a negative base") {
  auto found = gradients(power_text("1"));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(found["b"] == Values{0, 1, 0, -4, infinity});
  for (size_t i : {0, 1, 2, 4}) CHECK(found["e"][i] == 0);
  found = gradients(power_text("0"));
  CHECK(found["b"] == Values{0, 0, 0, 0, 0});
  CHECK(found["e"] == Values{0, 0, 0, 0, 0});
}

TEST_CASE("power with a constant exponent") {
  const std::string exponent = GENERATE("1", "2", "3", "2.5", "0.5", "-1");
  check_gradients(
      "state parameter %x: f32[3] = uniform(0.4, 2.0, seed 5)\n"
      "constant %e: f32[] = [" +
      exponent + "]\n%y = pow(%x, %e)\noutput \"y\" %y\n");
}

TEST_CASE("power with an integer exponent of another type") {
  check_gradients(
      "state parameter %x: f32[3] = literal [-1.5, 0.5, 2]\n"
      "constant %e: i64[3] = [2, 3, -1]\n%y = pow(%x, %e)\noutput \"y\" %y\n");
}

TEST_CASE("operands of an outer product plus a scalar") {
  auto found = gradients(
      "state parameter %a: f32[2,1] = literal [1, 2]\n"
      "state parameter %b: f32[1,3] = literal [1, 2, 3]\nstate parameter %c: f32[] = literal [5]\n"
      "%p = mul(%a, %b)\n%s = add(%p, %c)\n%l = reduce_sum(%s) {axes=[0,1]}\noutput \"loss\" %l\n");
  CHECK(found["a"] == Values{6, 6});
  CHECK(found["b"] == Values{3, 3, 3});
  CHECK(found["c"] == Values{6});
}
