// Medians and means of what was measured.
#include "measurements.h"

#include "support/catch.h"

using sgtc::runtime::mean;
using sgtc::runtime::median;

TEST_CASE("the median leaves out what was slow once") { CHECK(median({9, 1, 2}) == 2); }

TEST_CASE("the mean counts what was slow once") {
  CHECK(mean({9, 1, 2}) == 4);
  CHECK(mean({3}) == 3);
}
