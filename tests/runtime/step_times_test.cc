// The median of step times.
#include "step_times.h"

#include "support/catch.h"

using sgtc::runtime::StepTimes;

TEST_CASE("the first step does not count") {
  StepTimes times;
  times.add(1000);
  CHECK(times.count() == 0);
  times.add(3);
  CHECK(times.median() == 3);
  times.add(1);
  times.add(2);
  CHECK(times.count() == 3);
  CHECK(times.median() == 2);
}

TEST_CASE("the latest steps count") {
  StepTimes times;
  for (int i = 0; i < 1025; ++i) times.add(1);
  for (int i = 0; i < 600; ++i) times.add(5);
  CHECK(times.median() == 5);
  CHECK(times.count() == 1024);
}
