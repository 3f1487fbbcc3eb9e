// Matrix products, Einsum, convolutions, pools, resizing.
#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

std::string einsum(const std::string& equation, const std::string& inputs,
                   const std::string& names) {
  return "g (" + inputs + ") => (float[N] y) { y = Einsum <equation = \"" + equation + "\"> (" +
         names + ") }";
}

Reals transposed(const std::string& attributes, const std::string& w) {
  return output_of("g (float[1,1,2] x) => (float[N] y) <float[1,1,3] w = {" + w +
                       "}> { y = ConvTranspose <strides = [2], " + attributes + "> (x, w) }",
                   {{"x", {1, 2}}});
}

}  // namespace

TEST_CASE("MatMul of vectors and batches") {
  CHECK(output_of("g (float[2] a, float[2] b) => (float y) { y = MatMul (a, b) }",
                  {{"a", {1, 2}}, {"b", {3, 4}}}) == Reals{11});
  CHECK(output_of("g (float[2] a, float[2,2] b) => (float[2] y) { y = MatMul (a, b) }",
                  {{"a", {1, 2}}, {"b", {1, 2, 3, 4}}}) == Reals{7, 10});
  CHECK(output_of("g (float[2,1,2] a, float[2] b) => (float[2,1] y) { y = MatMul (a, b) }",
                  {{"a", {1, 2, 3, 4}}, {"b", {1, 1}}}) == Reals{3, 7});
}

TEST_CASE("Gemm with scales and a broadcast bias") {
  CHECK(output_of("g (float[2,1] a, float[2,2] b, float[2] c) => (float[1,2] y) "
                  "{ y = Gemm <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (a, b, c) }",
                  {{"a", {1, 2}}, {"b", {1, 2, 3, 4}}, {"c", {1, 10}}}) == Reals{4.5, 25.5});
}

TEST_CASE("Einsum forms") {
  const Values vectors = {{"a", {1, 2, 3}}, {"b", {4, 5, 6}}};
  CHECK(output_of(einsum("i,i", "float[3] a, float[3] b", "a, b"), vectors) == Reals{32});
  CHECK(output_of(einsum("ii->i", "float[2,2] a", "a"), {{"a", {1, 2, 3, 4}}}) == Reals{1, 4});
  CHECK(output_of(einsum("ij,kl->il", "float[2,2] a, float[1,2] b", "a, b"),
                  {{"a", {1, 2, 3, 4}}, {"b", {1, 10}}}) == Reals{3, 30, 7, 70});
  CHECK(output_of(einsum("a...b,b...", "float[2,2] a, float[2] b", "a, b"),
                  {{"a", {1, 2, 3, 4}}, {"b", {1, 10}}}) == Reals{21, 43});
  CHECK(output_of(einsum("...,...->...", "float a, float[2,3] b", "a, b"),
                  {{"a", {2}}, {"b", {1, 2, 3, 4, 5, 6}}}) == Reals{2, 4, 6, 8, 10, 12});
  CHECK(output_of(
            einsum("abc,cd,def->abd", "float[1,1,2] a, float[2,2] b, float[2,1,1] c", "a, b, c"),
            {{"a", {1, 2}}, {"b", {1, 2, 3, 4}}, {"c", {1, 10}}}) == Reals{7, 100});
}

TEST_CASE("Einsum refuses what does not fit") {
  CHECK(
      import_error(einsum("ij->i", "float[2] a", "a")).find("does not fit an operand of rank 1") !=
      std::string::npos);
  CHECK(import_error(einsum("i->j", "float[2] a", "a")).find("a label that no operand has") !=
        std::string::npos);
}

TEST_CASE("Conv with bias, groups and automatic padding") {
  CHECK(output_of("g (float[1,1,3] x) => (float[1,1,3] y) <float[1,1,2] w = {1, 10}, "
                  "float[1] b = {100}> { y = Conv <auto_pad = \"SAME_UPPER\"> (x, w, b) }",
                  {{"x", {1, 2, 3}}}) == Reals{121, 132, 103});
  CHECK(output_of("g (float[1,2,2] x) => (float[1,2,1] y) <float[2,1,2] w = {1, 1, 1, 10}> "
                  "{ y = Conv <group = 2> (x, w) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{3, 43});
}

TEST_CASE("convolutions refuse a weight of another rank than the input") {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    for (const char* shape : {"1,1,2", "1,1,2,2,2"}) {
      INFO(op << " with a weight of " << shape);
      const std::string graph = "g (float[1,1,4,4] x, float[" + std::string(shape) +
                                "] w) => (float[N] y) { y = " + op + " (x, w) }";
      CHECK(
          import_error(graph).find("the weight: expected 4 dimensions, as many as the input has") !=
          std::string::npos);
    }
  }
}

TEST_CASE("ConvTranspose with automatic padding and output padding") {
  CHECK(transposed("auto_pad = \"SAME_UPPER\"", "1, 1, 1") == Reals{1, 1, 3, 2});
  CHECK(transposed("auto_pad = \"SAME_LOWER\"", "1, 1, 1") == Reals{1, 3, 2, 2});
  CHECK(transposed("auto_pad = \"VALID\"", "1, 1, 1") == Reals{1, 1, 3, 2, 2});
  CHECK(transposed("pads = [1, 1], output_padding = [1]", "1, 10, 100") == Reals{10, 102, 20, 200});
}

TEST_CASE("pools") {
  const Values x = {{"x", {1, 2, 3, 4, 5}}};
  const auto pool = [&x](const std::string& op, const std::string& attributes) {
    return output_of(
        "g (float[1,1,5] x) => (float[N] y) { y = " + op + " <" + attributes + "> (x) }", x);
  };
  CHECK(pool("MaxPool", "kernel_shape = [2], strides = [2]") == Reals{2, 4});
  CHECK(pool("MaxPool", "kernel_shape = [2], strides = [2], ceil_mode = 1") == Reals{2, 4, 5});
  CHECK(pool("AveragePool", "kernel_shape = [3], pads = [1, 1], strides = [2]") ==
        Reals{1.5, 3, 4.5});
  CHECK(close(pool("AveragePool",
                   "kernel_shape = [3], pads = [1, 1], strides = [2], "
                   "count_include_pad = 1"),
              {1, 3, 3}));
  CHECK(output_of("g (float[1,1,5] x) => (float[1,1,1] y) { y = GlobalAveragePool (x) }", x) ==
        Reals{3});
  CHECK(output_of("g (float[1,1,5] x) => (float[1,1,1] y) { y = GlobalMaxPool (x) }", x) ==
        Reals{5});
}

TEST_CASE("Resize nearest and linear") {
  const auto resize = [](const std::string& attributes) {
    return output_of(
        "g (float[1,1,2] x) => (float[1,1,4] y) <float[3] s = {1, 1, 2}> "
        "{ y = Resize <" +
            attributes + "> (x, , s) }",
        {{"x", {1, 3}}});
  };
  CHECK(resize("mode = \"nearest\"") == Reals{1, 1, 3, 3});
  CHECK(resize("mode = \"linear\"") == Reals{1, 1.5, 2.5, 3});
  CHECK(close(resize("mode = \"linear\", coordinate_transformation_mode = \"align_corners\""),
              {1, 5.0 / 3, 7.0 / 3, 3}));
}
