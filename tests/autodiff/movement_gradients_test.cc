#include "autodiff/gradient_check.h"
#include "support/catch.h"

using sgtc::test::check_gradients;
using sgtc::test::gradients;
using sgtc::test::Values;

namespace {

std::string movement(const std::string& shape, const std::string& expression) {
  return "state parameter %x: f32" + shape + " = uniform(-1.0, 1.0, seed 4)\n%y = " + expression +
         "\noutput \"y\" %y\n";
}

}  // namespace

TEST_CASE("gradients of reshape, transpose and broadcast") {
  check_gradients(movement("[2,3,1]", "reshape(%x) {shape=[3,2]}"));
  check_gradients(movement("[1]", "reshape(%x) {shape=[]}"));
  check_gradients(movement("[2,3,4]", "transpose(%x) {perm=[2,0,1]}"));
  check_gradients(movement("[2,1,3]", "broadcast(%x) {shape=[4,2,5,3]}"));
  check_gradients(movement("[]", "broadcast(%x) {shape=[2,2]}"));
}

TEST_CASE("gradients of slices") {
  const std::string attributes =
      GENERATE("starts=[1,0], sizes=[2,5], steps=[1,1]", "starts=[0,4], sizes=[4,5], steps=[1,-1]",
               "starts=[0,0], sizes=[2,3], steps=[2,2]", "starts=[1,1], sizes=[2,2], steps=[2,2]",
               "starts=[3,4], sizes=[2,2], steps=[-2,-3]",
               "starts=[2,1], sizes=[1,1], steps=[7,-2]", "starts=[0,0], sizes=[4,5], steps=[1,1]",
               "starts=[3,3], sizes=[4,1], steps=[-1,1]", "starts=[0,1], sizes=[2,2], steps=[3,3]");
  check_gradients(movement("[4,5]", "slice(%x) {" + attributes + "}"));
}

TEST_CASE("an empty slice has the gradient zero") {
  auto found = gradients(
      "state parameter %x: f32[3] = literal [1, 2, 3]\n"
      "%e = slice(%x) {starts=[0], sizes=[0], steps=[1]}\n%y = concat(%e, %x) {axis=0}\n"
      "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{1, 1, 1});
}

TEST_CASE("gradients of pad reach the padded value too") {
  check_gradients(
      "state parameter %x: f32[2,3] = uniform(-1.0, 1.0, seed 4)\n"
      "state parameter %v: f32[] = literal [0.5]\n"
      "%y = pad(%x, %v) {low=[1,0], high=[0,2]}\noutput \"y\" %y\n");
}

TEST_CASE("gradients of concat") {
  check_gradients(
      "state parameter %a: f32[2,3] = uniform(-1.0, 1.0, seed 4)\n"
      "constant %b: f32[2,1] = [1, 2]\nstate parameter %c: f32[2,2] = uniform(-1.0, 1.0, seed 5)\n"
      "%y = concat(%a, %b, %c, %a) {axis=1}\n%z = mul(%y, %y)\noutput \"y\" %z\n");
}

TEST_CASE("gradients of gather with negative and repeated indices") {
  auto found = gradients(
      "state parameter %e: f32[5] = literal [1, 2, 3, 4, 5]\n"
      "constant %i: i64[4] = [-1, -3, 0, -1]\nconstant %w: f32[4] = [1, 2, 4, 8]\n"
      "%y = gather(%e, %i) {axis=0}\n%p = mul(%y, %w)\n"
      "%l = reduce_sum(%p) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["e"] == Values{4, 0, 2, 0, 9});
}

TEST_CASE("gather of an embedding table") {
  auto found = gradients(
      "state parameter %e: f32[3,2] = literal [1, 2, 3, 4, 5, 6]\n"
      "constant %i: i64[3] = [0, 0, 2]\n%y = gather(%e, %i) {axis=0}\n"
      "%l = reduce_sum(%y) {axes=[0,1]}\noutput \"loss\" %l\n");
  CHECK(found["e"] == Values{2, 2, 0, 0, 1, 1});
}

TEST_CASE("a gather gives its padding no gradient") {
  auto found = gradients(
      "state parameter %e: f32[3,2] = literal [1, 2, 3, 4, 5, 6]\n"
      "constant %i: i64[2,3] = [0, 0, 2, -3, 1, -1]\n%y = gather(%e, %i) {axis=0, padding=0}\n"
      "%l = reduce_sum(%y) {axes=[0,1,2]}\noutput \"loss\" %l\n");
  CHECK(found["e"] == Values{0, 0, 1, 1, 2, 2});
}

TEST_CASE("the padding of a gather along a later axis") {
  auto found = gradients(
      "state parameter %e: f32[2,3] = literal [1, 2, 3, 4, 5, 6]\n"
      "constant %i: i32[] = [1]\n%y = gather(%e, %i) {axis=1, padding=1}\n"
      "constant %j: i32[2] = [0, 1]\n%z = gather(%e, %j) {axis=1, padding=1}\n"
      "%s = reduce_sum(%y) {axes=[0]}\n%t = reduce_sum(%z) {axes=[0,1]}\n"
      "%u = reshape(%s) {shape=[]}\n%v = reshape(%t) {shape=[]}\n"
      "%l = add(%u, %v)\noutput \"loss\" %l\n");
  CHECK(found["e"] == Values{1, 0, 0, 1, 0, 0});
}

TEST_CASE("gradients of indexed reads") {
  const std::string line = GENERATE(
      "constant %i: i64[2,2] = [0, -1, 1, 1]\n%y = gather(%x, %i) {axis=1}\n",
      "constant %i: i64[] = [-2]\n%y = gather(%x, %i) {axis=0}\n",
      "constant %i: i64[2,3,2] = [0, -1, 1, 1, 0, 0, 3, 3, 3, 2, 2, 1]\n"
      "%y = gather_elements(%x, %i) {axis=2}\n",
      "constant %i: i64[1,2,4] = [0, 1, 1, -1, 0, 0, 1, 1]\n"
      "%y = gather_elements(%x, %i) {axis=0}\n",
      "constant %i: i64[2,2] = [0, -1, 1, 1]\n%y = gather_nd(%x, %i) {batch_dims=0}\n",
      "constant %i: i64[2,2,1] = [0, -1, 1, 1]\n%y = gather_nd(%x, %i) {batch_dims=1}\n",
      "constant %i: i32[2,3,1] = [0, -1, 1, 1, 0, -2]\n%y = gather_nd(%x, %i) {batch_dims=2}\n",
      "constant %i: i64[2,1,4] = [0, 2, 2, 1, 0, 0, 0, 1]\n%y = pick(%x, %i) {axis=1}\n");
  check_gradients("state parameter %x: f32[2,3,4] = uniform(-1.0, 1.0, seed 9)\n" + line +
                  "%z = mul(%y, %y)\noutput \"y\" %z\n");
}

TEST_CASE("gradients of indexed writes") {
  const std::string line = GENERATE(
      "state parameter %u: f32[3,2] = uniform(-1.0, 1.0, seed 2)\n"
      "constant %i: i64[2] = [0, -1]\n%y = scatter_add(%x, %i, %u) {axis=1}\n",
      "state parameter %u: f32[2,4] = uniform(-1.0, 1.0, seed 2)\n"
      "constant %i: i64[2,4] = [0, 1, -1, 1, 2, 2, 0, 0]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"none\"}\n",
      "state parameter %u: f32[2,4] = uniform(-1.0, 1.0, seed 2)\n"
      "constant %i: i64[2,4] = [0, 1, -1, 1, 0, 1, 0, 0]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"add\"}\n",
      "state parameter %u: f32[2,4] = uniform(-1.0, 1.0, seed 2)\n"
      "constant %i: i64[2,1] = [0, -1]\n%y = scatter_nd(%x, %i, %u) {reduction=\"none\"}\n",
      "state parameter %u: f32[2] = uniform(-1.0, 1.0, seed 2)\n"
      "constant %i: i64[2,2] = [1, 1, 1, 1]\n%y = scatter_nd(%x, %i, %u) {reduction=\"add\"}\n");
  check_gradients("state parameter %x: f32[3,4] = uniform(-1.0, 1.0, seed 9)\n" + line +
                  "%z = mul(%y, %y)\noutput \"y\" %z\n");
}

TEST_CASE("gradients of writes that combine") {
  const std::string line = GENERATE(
      "constant %i: i64[3,3] = [0, 1, -1, 1, 1, 2, 0, 1, 0]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=",
      "constant %i: i64[3,3,2] = [0, 0, 0, 1, 0, 0, 2, 3, 2, 3, 2, -1, 1, 1, 0, 0, -2, 1]\n"
      "%y = scatter_nd(%x, %i, %u) {reduction=");
  const std::string reduction = GENERATE("\"mul\"", "\"max\"", "\"min\"");
  check_gradients(
      "state parameter %x: f32[3,4] = uniform(-1.0, 1.0, seed 9)\n"
      "state parameter %u: f32[3,3] = uniform(-1.0, 1.0, seed 2)\n" +
      line + reduction + "}\n%z = mul(%y, %y)\noutput \"y\" %z\n");
}

TEST_CASE("of equal bounds of a write the first takes the gradient") {
  const auto written = [](const std::string& reduction) {
    return gradients(
        "state parameter %x: f32[3] = literal [5, 1, 2]\n"
        "state parameter %u: f32[4] = literal [5, 3, 3, 2]\n"
        "constant %i: i64[4,1] = [0, 1, 1, -1]\n"
        "%y = scatter_nd(%x, %i, %u) {reduction=\"" +
        reduction + "\"}\n%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  };
  CHECK(written("max") == std::map<std::string, Values>{{"x", {1, 0, 1}}, {"u", {0, 1, 0, 0}}});
  CHECK(written("min") == std::map<std::string, Values>{{"x", {1, 1, 1}}, {"u", {0, 0, 0, 0}}});
}

TEST_CASE("zeros among the factors of a write") {
  auto found = gradients(
      "state parameter %x: f32[2] = literal [2, 3]\n"
      "state parameter %u: f32[4] = literal [0, 4, 0, 0]\n"
      "constant %i: i64[4] = [0, 0, 1, 1]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"mul\"}\n"
      "%l = reduce_sum(%y) {axes=[0]}\noutput \"loss\" %l\n");
  CHECK(found["x"] == Values{0, 0});
  CHECK(found["u"] == Values{8, 0, 0, 0});
}
