#include "runtime/launch/activity.h"

#include <string>

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("activities in words") {
  CurrentActivity activity;
  CHECK(describe(activity.get()) == "start-up");
  activity.set(12, nullptr, 0);
  CHECK(describe(activity.get()) == "step 12");
  activity.set(12, "all_reduce_3", 2);
  CHECK(describe(activity.get()) == "step 12, all_reduce_3 of micro-batch 2");
}

TEST_CASE("long names of entries are cut") {
  const std::string name(200, 'x');
  CurrentActivity activity;
  activity.set(1, name.c_str(), 0);
  CHECK(std::string(activity.get().entry) == std::string(63, 'x'));
}

}  // namespace sgtc::runtime
