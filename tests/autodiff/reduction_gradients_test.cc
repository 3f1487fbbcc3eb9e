#include "autodiff/gradient_check.h"
#include "support/catch.h"

using sgtc::test::check_gradients;
using sgtc::test::gradients;
using sgtc::test::Values;

namespace {

std::string on_parameter(const std::string& shape, const std::string& expression) {
  return "state parameter %x: f32" + shape + " = uniform(-1.0, 1.0, seed 11)\n%y = " + expression +
         "\n%z = mul(%y, %y)\noutput \"y\" %z\n";
}

}  // namespace

TEST_CASE("gradients of reductions") {
  const std::string op = GENERATE("reduce_sum", "reduce_max", "reduce_min", "reduce_prod");
  const std::string axes =
      GENERATE("[0]", "[1]", "[2]", "[0,1]", "[0,2]", "[1,2]", "[0,1,2]", "[]");
  check_gradients(on_parameter("[2,3,4]", op + "(%x) {axes=" + axes + "}"));
  check_gradients(on_parameter("[1,3,1]", op + "(%x) {axes=" + axes + "}"));
}

TEST_CASE("reduce_max and reduce_min pass the gradient to the first bound") {
  const std::string op = GENERATE("reduce_max", "reduce_min");
  const bool is_max = op == "reduce_max";
  auto found = gradients(std::string("state parameter %x: f32[2,3] = literal ") +
                         (is_max ? "[1, 2, 2, 2, 1, 2]" : "[5, 2, 2, 2, 5, 2]") + "\n%l = " + op +
                         "(%x) {axes=[0,1]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{0, 1, 0, 0, 0, 0});
}

TEST_CASE("a maximum that is subtracted from one element gives zero") {
  auto found = gradients(
      "state parameter %x: f32[1] = literal [3]\n%m = reduce_max(%x) {axes=[0]}\n"
      "%l = sub(%x, %m)\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{0});
}

TEST_CASE("reduce_prod with zeros") {
  auto product_gradient = [](const std::string& values) {
    return gradients("state parameter %x: f32[3] = literal " + values +
                     "\n%l = reduce_prod(%x) {axes=[0]}\noutput \"loss\" %l\n")["x"];
  };
  CHECK(product_gradient("[2, 3, 4]") == Values{12, 8, 6});
  CHECK(product_gradient("[2, 0, 4]") == Values{0, 8, 0});
  CHECK(product_gradient("[0, 0, 4]") == Values{0, 0, 0});
}

TEST_CASE("gradients of cumulative sums") {
  const std::string flags = GENERATE("exclusive=0, reverse=0", "exclusive=1, reverse=0",
                                     "exclusive=0, reverse=1", "exclusive=1, reverse=1");
  check_gradients(on_parameter("[2,4]", "cum_sum(%x) {axis=1, " + flags + "}"));
}

TEST_CASE("gradients of top_k") {
  const std::string flags = GENERATE("largest=1", "largest=0");
  check_gradients(
      "state parameter %x: f32[3,4] = uniform(-1.0, 1.0, seed 11)\n"
      "%y, %i = top_k(%x) {axis=1, k=2, " +
      flags + "}\n%z = mul(%y, %y)\noutput \"y\" %z\n");
}
