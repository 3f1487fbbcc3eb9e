#include "runtime/learning_rate.h"

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("without warm-up and decay the rate is constant") {
  const LearningRate rate{0.5, 0, "none", 10};
  for (int64_t step = 1; step <= 12; ++step) CHECK(rate.at(step) == 0.5);
}

TEST_CASE("warm-up rises linearly to the peak") {
  const LearningRate rate{1.0, 4, "none", 10};
  CHECK(rate.at(1) == 0.25);
  CHECK(rate.at(3) == 0.75);
  CHECK(rate.at(4) == 1.0);
  CHECK(rate.at(5) == 1.0);
}

TEST_CASE("linear decay reaches zero one step after the last") {
  const LearningRate rate{1.0, 2, "linear", 6};
  CHECK(rate.at(3) == 1.0);
  CHECK(rate.at(4) == 0.75);
  CHECK(rate.at(6) == 0.25);
  CHECK(rate.at(7) == 0);
  CHECK(rate.at(100) == 0);
}

TEST_CASE("cosine decay is half way down in the middle") {
  const LearningRate rate{2.0, 0, "cosine", 10};
  CHECK(rate.at(1) == 2.0);
  CHECK(rate.at(6) == Approx(1.0));
  CHECK(rate.at(11) == Approx(0).margin(1e-12));
}

TEST_CASE("a warm-up as long as the run leaves no decay") {
  const LearningRate rate{1.0, 5, "linear", 5};
  CHECK(rate.at(5) == 1.0);
  CHECK(rate.at(6) == 1.0);
}

}  // namespace sgtc::runtime
