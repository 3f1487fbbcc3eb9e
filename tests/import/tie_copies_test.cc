// Tied parameters of which PyTorch's exporter folded a copy.
#include "import/tie_copies.h"

#include "import/exported_file.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

// An embedding whose table, transposed, is the output projection.
Exported tied_embedding(const std::string& table, const std::string& copy) {
  return Exported("g (int64[2] ids) => (float l) <float[3,2] w = {" + table +
                      "}, float[2,3] t = {" + copy +
                      "}> {\n"
                      "h = Gather (w, ids)\ny = MatMul (h, t)\nl = ReduceSum <keepdims = 0> (y) }",
                  {"w"}, {"embedding.default: %p_w, %ids", "linear.default: %h, %p_w", ""});
}

const std::string kTable = "1, 2, 3, 4, 5, 6", kTransposed = "1, 3, 5, 2, 4, 6";

}  // namespace

TEST_CASE("a transposed copy of a parameter is tied to it") {
  Exported file = tied_embedding(kTable, kTransposed);
  const Graph graph = file.folded("t", "['w']").import();
  CHECK(parameters_of(graph) == Names{"w"});
  CHECK(run(graph, {{"ids", {0, 2}}}).at("l") == std::vector<double>{6 * 9 + 8 * 12});
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].text ==
        "the exporter had copied parameters that have other uses; copies that were tied to them "
        "again: 1");
}

TEST_CASE("a tensor that is no copy is not tied") {
  CHECK(parameters_of(tied_embedding(kTable, "1, 3, 5, 2, 4, 7").folded("t", "['w']").import()) ==
        Names{"t", "w"});
}

TEST_CASE("an equal tensor of another parameter is not tied") {
  CHECK(parameters_of(tied_embedding(kTable, kTransposed).folded("t", "['v']").import()) ==
        Names{"w"});
  Exported file(
      "g (float[1,2] x) => (float l) <float[2,2] w = {1, 2, 3, 4}, float[2,2] t = {1, 3, 2, 4}> {\n"
      "h = MatMul (x, w)\ny = MatMul (h, t)\nl = ReduceSum <keepdims = 0> (y) }",
      {"w", "v"}, {});
  CHECK(parameters_of(file.folded("t", "['v']").import()) == Names{"t", "w"});
}

TEST_CASE("a tensor of equal elements does not tell what was computed") {
  CHECK(parameters_of(
            tied_embedding("2, 2, 2, 2, 2, 2", "2, 2, 2, 2, 2, 2").folded("t", "['w']").import()) ==
        Names{"t", "w"});
}

TEST_CASE("reshaped and equal copies are tied too") {
  Exported file(
      "g (float[3,2] x) => (float l)\n"
      "<float[2] w = {1, 2}, float[1,2] u = {1, 2}, float[2] e = {1, 2}> {\n"
      "a = Mul (x, w)\nb = Mul (a, u)\nc = Mul (b, e)\nl = ReduceSum <keepdims = 0> (c) }",
      {"w"}, {});
  file.folded("u", "['w', 'val_1']").folded("e", "['w']");
  const Graph graph = file.import();
  CHECK(parameters_of(graph) == Names{"w"});
  CHECK(run(graph, {{"x", {1, 1, 1, 1, 1, 1}}}).at("l") == std::vector<double>{27});
}

TEST_CASE("copies whose parameter is gone are tied to the first of them") {
  Exported file(
      "g (float[1,2,3] x) => (float l)\n<float[1,3,2] a = {1, 2, 3, 4, 5, 6},\n"
      "float[1,2,3] b = {1, 3, 5, 2, 4, 6}> {\n"
      "h = MatMul (x, a)\ny = MatMul (h, b)\nl = ReduceSum <keepdims = 0> (y) }",
      {"w"}, {});
  const Graph graph = file.folded("a", "['w']").folded("b", "['w', 'val_2']").import();
  CHECK(parameters_of(graph) == Names{"a"});
  CHECK(run(graph, {{"x", {1, 0, 0, 0, 0, 0}}}).at("l") == std::vector<double>{9 + 2 * 12});
}
