#include "runtime/elementary.h"

#include <cmath>

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("the logarithm agrees with the C library's") {
  for (int i = 1; i < 10000; ++i) {
    const double x = i / 10000.0;
    REQUIRE(natural_log(x) == Approx(std::log(x)).epsilon(1e-15).margin(1e-16));
  }
  CHECK(natural_log(0x1p-33) == Approx(-33 * std::log(2.0)).epsilon(1e-15));
}

TEST_CASE("cosine and sine agree with the C library's on a whole turn") {
  for (int i = 0; i <= 10000; ++i) {
    const double u = i / 10000.0;
    double cosine;
    double sine;
    cosine_sine(u, cosine, sine);
    REQUIRE(cosine == Approx(std::cos(2 * M_PI * u)).margin(1e-15));
    REQUIRE(sine == Approx(std::sin(2 * M_PI * u)).margin(1e-15));
  }
}

TEST_CASE("the square root is the C library's") {
  for (double x : {0.0, 1.0, 2.0, 1e-300, 1e300}) CHECK(square_root(x) == std::sqrt(x));
}

}  // namespace sgtc::runtime
