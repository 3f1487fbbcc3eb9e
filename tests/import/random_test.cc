// Operators that draw numbers: what is drawn has the distribution that the operator names.
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

constexpr int kDraws = 4000;

double share_of(const std::vector<double>& values, double value) {
  return static_cast<double>(std::count(values.begin(), values.end(), value)) /
         static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("Multinomial draws classes by their logarithms") {
  const std::string size = std::to_string(kDraws);
  const std::string graph = "g (float[2,3] x) => (int32[2," + size +
                            "] y) { y = Multinomial <sample_size = " + size + "> (x) }";
  const double never = -std::numeric_limits<double>::infinity();
  const std::vector<double> both =
      output_of(graph, {{"x", {0, std::log(2), std::log(5), never, 1, never}}});
  REQUIRE(both.size() == 2 * kDraws);
  const std::vector<double> drawn(both.begin(), both.begin() + kDraws);
  // Four deviations.
  CHECK(std::abs(share_of(drawn, 0) - 1.0 / 8) < 0.021);
  CHECK(std::abs(share_of(drawn, 1) - 2.0 / 8) < 0.028);
  CHECK(std::abs(share_of(drawn, 2) - 5.0 / 8) < 0.031);
  CHECK(std::count(both.begin() + kDraws, both.end(), 1) == kDraws);
}
