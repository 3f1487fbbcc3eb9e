// Operators whose values decide shapes: they work on what is known when the model is compiled, and
// are refused by name, with the remedy, on what is not.
#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;
using Catch::Matchers::ContainsSubstring;
using Reals = std::vector<double>;

namespace {

// All outputs of a graph without inputs, in order of their names.
Values outputs_of(const std::string& graph) { return run(import_text(graph), {}); }

}  // namespace

TEST_CASE("indices of elements that are not zero") {
  CHECK(output_of("g () => (int64[1,2] y) <float[3] x = {0, 2, 3}> { y = NonZero (x) }") ==
        Reals{1, 2});
  CHECK(output_of("g () => (int64[2,n] y) <float[2,2] x = {1, 0, 3, 4}> { y = NonZero (x) }") ==
        Reals{0, 1, 1, 0, 0, 1});
  CHECK(output_of("g () => (int64[1,n] y) <float[2] x = {0, 0}> { y = NonZero (x) }").empty());
}

TEST_CASE("distinct elements, where they are first, which of them each one is, how often") {
  const std::string graph =
      "g () => (float[n] a, int64[n] b, int64[m] c, int64[n] d) "
      "<float[6] x = {2, 1, 1, 3, 4, 3}> { a, b, c, d = Unique";
  Values found = outputs_of(graph + " (x) }");
  CHECK(found["a"] == Reals{1, 2, 3, 4});
  CHECK(found["b"] == Reals{1, 0, 3, 4});
  CHECK(found["c"] == Reals{1, 0, 0, 2, 3, 2});
  CHECK(found["d"] == Reals{2, 1, 2, 1});
  found = outputs_of(graph + " <sorted = 0> (x) }");
  CHECK(found["a"] == Reals{2, 1, 3, 4});
  CHECK(found["c"] == Reals{0, 1, 1, 2, 3, 2});
}

TEST_CASE("distinct slices along an axis") {
  const std::string text =
      "g () => (int64[n,m] y) <int64[3,3] x = {1, 0, 0, 1, 0, 0, 2, 3, 4}> { y = Unique <axis = ";
  CHECK(output_of(text + "0> (x) }") == Reals{1, 0, 0, 2, 3, 4});
  CHECK(output_of(text + "-1> (x) }") == Reals{0, 0, 1, 0, 0, 1, 3, 4, 2});
  CHECK(output_of("g () => (float[n,m] y) <float[2,0] x = {}> { y = Unique <axis = 0> (x) }")
            .empty());
}

TEST_CASE("elements that order in their own way are distinct or not") {
  // Beyond what doubles tell apart; the two zeros are one number.
  CHECK(output_of("g () => (int64[n] y) <int64[3] x = "
                  "{9223372036854775807, 9223372036854775806, 9223372036854775807}> "
                  "{ u = Unique (x) y = Shape (u) }") == Reals{2});
  CHECK(output_of("g () => (float[n] y) { x = Constant <value = float[4] {1, -2, 0, -1}> () "
                  "z = Neg (x) c = Concat <axis = 0> (x, z) y = Unique (c) }") ==
        Reals{-2, -1, 0, 1, 2});
  CHECK(output_of("g () => (int64[1] y) { x = Constant <value = float[3] {-1, -1, 4}> () "
                  "s = Sqrt (x) u = Unique (s) y = Shape (u) }") == Reals{2});
}

TEST_CASE("boxes are suppressed by those of higher score that they overlap") {
  const std::string boxes =
      "float[1,4,4] boxes = {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11, 1, 1.05, 0, 0.05}, "
      "float[1,1,4] scores = {0.9, 0.75, 0.6, 0.95}";
  const auto kept = [&](const std::string& rest, const std::string& inputs) {
    return output_of("g () => (int64[n,3] y) <" + boxes + rest + "> { y = NonMaxSuppression (" +
                     inputs + ") }");
  };
  const std::string limits = ", int64 most = {3}, float overlap = {0.5}, float score = {0.7}";
  CHECK(kept(limits, "boxes, scores, most, overlap") == Reals{0, 0, 3, 0, 0, 2});
  CHECK(kept(limits, "boxes, scores, most, overlap, score") == Reals{0, 0, 3});
  CHECK(kept("", "boxes, scores").empty());
  CHECK(kept(", int64 most = {4}, float overlap = {1}", "boxes, scores, most, overlap").size() ==
        12);
}

TEST_CASE("shapes that data decides are refused by name") {
  const auto error = [](const std::string& node, const std::string& input) {
    return import_error("g (" + input + " x) => (float[n] y) { " + node + " }");
  };
  for (const auto& [node, input] :
       {std::pair("y = NonZero (x)", "float[3]"), std::pair("y = Unique (x)", "float[3]"),
        std::pair("y = NonMaxSuppression (x, x)", "float[1,1,4]"),
        std::pair("y = Compress (x, x)", "bool[3]"), std::pair("y = Expand (x, x)", "int64[3]"),
        std::pair("y = Range (x, x, x)", "int64"), std::pair("y = Reshape (x, x)", "int64[3]"),
        std::pair("y = ConstantOfShape (x)", "int64[3]")}) {
    INFO(node);
    const std::string found = error(node, input);
    CHECK_THAT(found, ContainsSubstring("node \"y\"") &&
                          ContainsSubstring("must be known when the model is compiled") &&
                          ContainsSubstring("constant"));
    CHECK(found.find('\n') == std::string::npos);
  }
}

TEST_CASE("what shape arithmetic leads to counts as known") {
  // An attention mask's rows and columns, as exporters write them.
  CHECK(output_of("g (float[2,3] x) => (int64[2,n] y) { s = Shape (x) "
                  "c = ConstantOfShape <value = float[1] {1}> (s) y = NonZero (c) }",
                  {{"x", Reals(6, 0)}}) == Reals{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2});
}
