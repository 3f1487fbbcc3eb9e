#include <cmath>
#include <limits>

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

Reals reduce(const std::string& op, const Reals& x = {1, -2, 3, 4}) {
  return output_of("g (float[2,2] x) => (float[2] y) <int64[1] a = {-1}> { y = " + op +
                       " <keepdims = 0> (x, a) }",
                   {{"x", x}}, 18);
}

}  // namespace

TEST_CASE("reductions over one axis") {
  CHECK(output_of("g (float[2,2] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceSum (x, a) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{3, 7});
  CHECK(reduce("ReduceMean") == Reals{-0.5, 3.5});
  CHECK(reduce("ReduceMax") == Reals{1, 4});
  CHECK(reduce("ReduceMin") == Reals{-2, 3});
  CHECK(reduce("ReduceProd") == Reals{-2, 12});
  CHECK(reduce("ReduceL1") == Reals{3, 7});
  CHECK(close(reduce("ReduceL2"), {std::sqrt(5), 5}));
  CHECK(reduce("ReduceSumSquare") == Reals{5, 25});
  CHECK(close(reduce("ReduceLogSum", {1, 2, 3, 4}), {std::log(3), std::log(7)}));
}

TEST_CASE("ReduceLogSumExp neither overflows nor loses infinities") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(close(reduce("ReduceLogSumExp", {1000, 1000, -infinity, -infinity}),
              {1000 + std::log(2), -infinity}));
}

TEST_CASE("axes by attribute, none at all, and none as identity") {
  CHECK(output_of("g (float[2,2] x) => (float[2] y) "
                  "{ y = ReduceSum <axes = [0], keepdims = 0> (x) }",
                  {{"x", {1, 2, 3, 4}}}, 11) == Reals{4, 6});
  CHECK(output_of("g (float[2,2] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }",
                  {{"x", {1, 2, 3, 4}}}) == Reals{10});
  CHECK(output_of("g (float[2] x) => (float[2] y) "
                  "{ y = ReduceSum <noop_with_empty_axes = 1> (x) }",
                  {{"x", {1, 2}}}) == Reals{1, 2});
  CHECK(import_error("g (float[2] x) => (float[2] y) { y = ReduceSum <axes = [1]> (x) }", 11) ==
        "node \"y\" (ReduceSum): axis 1 is out of range for a tensor of rank 1");
}

TEST_CASE("reductions of no elements") {
  const auto of_nothing = [](const std::string& op) {
    return output_of(
        "g (float[1,0] x) => (float[1,1] y) <int64[1] axes = {1}> { y = " + op + " (x, axes) }",
        {{"x", {}}}, 20);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [op, value] :
       {std::pair("ReduceSum", 0.0), std::pair("ReduceProd", 1.0), std::pair("ReduceL2", 0.0),
        std::pair("ReduceMax", -infinity), std::pair("ReduceMin", infinity),
        std::pair("ReduceLogSum", -infinity), std::pair("ReduceLogSumExp", -infinity)}) {
    INFO(op);
    CHECK(of_nothing(op) == std::vector<double>{value});
  }
}
