#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

TEST_CASE("Reshape copies sizes, takes the rest and accepts zero sizes") {
  const auto reshape = [](const std::string& shape, const std::string& attributes,
                          const std::string& input) {
    return "g (float" + input + " x) => (float[N] y) <int64[2] s = {" + shape + "}> { y = Reshape" +
           attributes + "(x, s) }";
  };
  CHECK(import_text(reshape("0, -1", "", "[4,2,3]")).shape(1) == Shape{4, 6});
  const Graph empty = import_text(
      "g (float[0,2] x) => (float y) <int64[2] s = {0, 2}> "
      "{ r = Reshape <allowzero = 1> (x, s) y = ReduceSum <keepdims = 0> (r) }");
  CHECK(run(empty, {{"x", {}}}).at("y") == Reals{0});
  CHECK(import_error(reshape("0, -1", " <allowzero = 1>", "[0,2]")).find("both 0 and -1") !=
        std::string::npos);
  CHECK(import_error(reshape("4, -1", "", "[6]")).find("cannot reshape [6] to [4,-1]") !=
        std::string::npos);
}

TEST_CASE("a constant Reshape folds with the copied size") {
  const Graph graph = import_text(
      "g () => (int64[2,3] y) <int64[2] s = {0, 3}, int64[2,3] w = {1, 2, 3, 4, 5, 6}> "
      "{ y = Reshape (w, s) }");
  CHECK(graph.nodes.empty());
  CHECK(graph.shape(graph.outputs[0].value) == Shape{2, 3});
}

TEST_CASE("shape arithmetic disappears") {
  const Graph graph = import_text(R"(
    g (float[4,6] x) => (float[4,2,3] y) <int64[1] zero = {0}, int64[2] rest = {2, 3}> {
      s = Shape (x)
      n = Gather (s, zero)
      t = Concat <axis = 0> (n, rest)
      y = Reshape (x, t)
    })");
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == Op::kReshape);
}

TEST_CASE("Slice with negative positions and steps") {
  const auto slice = [](const std::string& starts, const std::string& ends,
                        const std::string& steps) {
    return output_of("g (float[5] x) => (float[N] y) <int64[1] s = {" + starts +
                         "}, int64[1] e = {" + ends + "}, int64[1] a = {0}, int64[1] t = {" +
                         steps + "}> { y = Slice (x, s, e, a, t) }",
                     {{"x", {0, 1, 2, 3, 4}}});
  };
  CHECK(slice("1", "-1", "1") == Reals{1, 2, 3});
  CHECK(slice("-1", "-9223372036854775807", "-2") == Reals{4, 2, 0});
  CHECK(slice("3", "0", "-1") == Reals{3, 2, 1});
  CHECK(slice("0", "9223372036854775807", "2") == Reals{0, 2, 4});
  CHECK(slice("4", "2", "1").empty());
}

TEST_CASE("Slice by attributes of old opsets") {
  CHECK(output_of("g (float[2,3] x) => (float[1,2] y) "
                  "{ y = Slice <axes = [0, 1], starts = [1, 0], ends = [2, 2]> (x) }",
                  {{"x", {1, 2, 3, 4, 5, 6}}}, 9) == Reals{4, 5});
}

TEST_CASE("Pad in all modes") {
  const auto pad = [](const std::string& mode, const std::string& pads) {
    return output_of("g (float[3] x) => (float[N] y) <int64[2] p = {" + pads +
                         "}> { y = Pad <mode = \"" + mode + "\"> (x, p) }",
                     {{"x", {1, 2, 3}}});
  };
  CHECK(pad("constant", "1, 2") == Reals{0, 1, 2, 3, 0, 0});
  CHECK(pad("constant", "-1, 1") == Reals{2, 3, 0});
  CHECK(pad("reflect", "2, 1") == Reals{3, 2, 1, 2, 3, 2});
  CHECK(pad("edge", "2, 1") == Reals{1, 1, 1, 2, 3, 3});
  CHECK(pad("wrap", "2, 1") == Reals{2, 3, 1, 2, 3, 1});
}

TEST_CASE("Split by sizes and by number of parts") {
  const Values x = {{"x", {0, 1, 2, 3, 4}}};
  const Graph sizes = import_text(
      "g (float[5] x) => (float[2] a, float[3] b) <int64[2] s = {2, 3}> { a, b = Split (x, s) }");
  CHECK(run(sizes, x).at("b") == Reals{2, 3, 4});
  const Graph parts = import_text(
      "g (float[5] x) => (float[3] a, float[2] b) { a, b = Split <num_outputs = 2> (x) }");
  CHECK(run(parts, x).at("a") == Reals{0, 1, 2});
  CHECK(run(parts, x).at("b") == Reals{3, 4});
  CHECK(import_error("g (float[5] x) => (float[2] a, float[2] b) <int64[2] s = {2, 2}> "
                     "{ a, b = Split (x, s) }")
            .find("do not add up to 5") != std::string::npos);
}

TEST_CASE("Expand, Tile, Squeeze, Unsqueeze, Flatten, Transpose") {
  CHECK(output_of("g (float[2,1] x) => (float[2,2] y) <int64[2] s = {1, 2}> { y = Expand (x, s) }",
                  {{"x", {1, 2}}}) == Reals{1, 1, 2, 2});
  CHECK(output_of("g (float[2] x) => (float[4] y) <int64[1] r = {2}> { y = Tile (x, r) }",
                  {{"x", {1, 2}}}) == Reals{1, 2, 1, 2});
  CHECK(import_text("g (float[1,2,1] x) => (float[N] y) { y = Squeeze (x) }").shape(1) == Shape{2});
  CHECK(import_text("g (float[2] x) => (float[N] y) { y = Unsqueeze <axes = [0, -1]> (x) }", 11)
            .shape(1) == Shape{1, 2, 1});
  CHECK(
      import_text("g (float[2,3,4] x) => (float[N] y) { y = Flatten <axis = -1> (x) }").shape(1) ==
      Shape{6, 4});
  CHECK(output_of("g (float[2,2] x) => (float[2,2] y) { y = Transpose (x) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{1, 3, 2, 4});
}

TEST_CASE("Trilu, DepthToSpace, SpaceToDepth") {
  const Reals square{1, 2, 3, 4};
  CHECK(output_of("g (float[2,2] x) => (float[2,2] y) { y = Trilu <upper = 0> (x) }",
                  {{"x", square}}) == Reals{1, 0, 3, 4});
  CHECK(output_of("g (float[2,2] x) => (float[2,2] y) <int64 k = {1}> { y = Trilu (x, k) }",
                  {{"x", square}}) == Reals{0, 2, 0, 0});
  CHECK(output_of("g (float[1,4,1,1] x) => (float[1,1,2,2] y) "
                  "{ y = DepthToSpace <blocksize = 2> (x) }",
                  {{"x", square}}) == square);
  CHECK(output_of("g (float[1,1,2,2] x) => (float[1,4,1,1] y) "
                  "{ y = SpaceToDepth <blocksize = 2> (x) }",
                  {{"x", square}}) == square);
}

TEST_CASE("constants of shapes, ranges, identities") {
  CHECK(output_of("g () => (int64[2] y) <int64[1] s = {2}> "
                  "{ y = ConstantOfShape <value = int64[1] {7}> (s) }") == Reals{7, 7});
  CHECK(output_of("g () => (int64[3] y) <int64 a = {5}, int64 b = {0}, int64 d = {-2}> "
                  "{ y = Range (a, b, d) }") == Reals{5, 3, 1});
  CHECK(output_of("g () => (float[4] y) <float a = {1}, float b = {2}, float d = {0.3}> "
                  "{ y = Range (a, b, d) }")
            .size() == 4);
  CHECK(output_of("g (float[2,3] x) => (float[2,3] y) { y = EyeLike <k = 1> (x) }",
                  {{"x", {0, 0, 0, 0, 0, 0}}}) == Reals{0, 1, 0, 0, 0, 1});
  CHECK(output_of("g (float[2,3,4] x) => (int64[2] y) { y = Shape <start = -2> (x) }") ==
        Reals{3, 4});
}
