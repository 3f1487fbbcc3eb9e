#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

TEST_CASE("Gather counts negative indices from the end") {
  const Values data = {{"e", {1, 2, 3, 4, 5}}};
  CHECK(output_of("g (float[5] e) => (float[4] y) <int64[4] i = {-1, -3, 0, -1}> "
                  "{ y = Gather (e, i) }",
                  data) == Reals{5, 3, 1, 5});
  CHECK(output_of("g (float[5] e, int64[4] i) => (float[4] y) { y = Gather (e, i) }",
                  {{"e", {1, 2, 3, 4, 5}}, {"i", {-1, -3, 0, -1}}}) == Reals{5, 3, 1, 5});
}

TEST_CASE("a constant index out of range is an error that names the node") {
  CHECK(import_error("g () => (int64[1] y) <int64[5] e = {1, 2, 3, 4, 5}, int64[1] i = {5}> "
                     "{ y = Gather (e, i) }")
            .find("node \"y\" (Gather): ") == 0);
}

TEST_CASE("gathers and scatters") {
  CHECK(output_of("g (float[2,2] x) => (float[2,2] y) <int64[2,2] i = {0, 0, 1, 0}> "
                  "{ y = GatherElements <axis = 1> (x, i) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{1, 1, 4, 3});
  CHECK(output_of("g (float[2,2] x) => (float[2] y) <int64[2,2] i = {0, 0, 1, -1}> "
                  "{ y = GatherND (x, i) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{1, 4});
  CHECK(output_of("g (float[3] x) => (float[3] y) <int64[2] i = {1, 1}, float[2] u = {5, 7}> "
                  "{ y = ScatterElements <reduction = \"add\"> (x, i, u) }",
                  {{"x", {1, 2, 3}}}) == Reals{1, 14, 3});
  CHECK(output_of("g (float[3] x) => (float[3] y) <int64[2,1] i = {0, 2}, float[2] u = {5, 7}> "
                  "{ y = ScatterND (x, i, u) }",
                  {{"x", {1, 2, 3}}}) == Reals{5, 2, 7});
}

TEST_CASE("OneHot wraps negative indices and switches off others") {
  CHECK(output_of("g (int64[3] i) => (float[3,3] y) <int64 d = {3}, float[2] v = {0, 2}> "
                  "{ y = OneHot (i, d, v) }",
                  {{"i", {1, -1, 7}}}) == Reals{0, 2, 0, 0, 0, 2, 0, 0, 0});
}

TEST_CASE("CumSum, TopK, ArgMax") {
  CHECK(output_of("g (float[3] x) => (float[3] y) <int64 a = {0}> "
                  "{ y = CumSum <reverse = 1> (x, a) }",
                  {{"x", {1, 2, 3}}}) == Reals{6, 5, 3});
  const Graph top = import_text(
      "g (float[4] x) => (float[2] v, int64[2] i) <int64[1] k = {2}> { v, i = TopK (x, k) }");
  const Values found = run(top, {{"x", {1, 4, 2, 4}}});
  CHECK(found.at("v") == Reals{4, 4});
  CHECK(found.at("i") == Reals{1, 3});
  CHECK(output_of("g (float[2,2] x) => (int64[2] y) { y = ArgMax <axis = 1, keepdims = 0, "
                  "select_last_index = 1> (x) }",
                  {{"x", {1, 1, 3, 2}}}) == Reals{1, 0});
}

TEST_CASE("constant indices out of range are refused when they are known") {
  for (const std::string op : {"Gather", "GatherElements"}) {
    for (const std::string index : {"3", "-4"}) {
      const std::string error =
          import_error("g (float[3] x) => (float[1] y) { i = Constant <value = int64[1] {" + index +
                       "}> () y = " + op + " (x, i) }");
      CHECK(error.find("node \"y\" (" + op + "): index " + index + " is out of range") !=
            std::string::npos);
    }
  }
}
