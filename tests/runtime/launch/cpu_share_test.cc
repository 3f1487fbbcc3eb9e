#include "runtime/launch/cpu_share.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

using Cpus = std::vector<int>;

}  // namespace

TEST_CASE("CPUs as ranges") {
  CHECK(cpu_list({}).empty());
  CHECK(cpu_list({3}) == "3");
  CHECK(cpu_list({0, 1, 2, 3, 8}) == "0-3,8");
  CHECK(cpu_list({1, 3, 4}) == "1,3-4");
}

TEST_CASE("ranks share CPUs without overlap") {
  CHECK(cpu_share({0, 1, 4, 5}, 0, 2) == Cpus{0, 1});
  CHECK(cpu_share({0, 1, 4, 5}, 1, 2) == Cpus{4, 5});
  CHECK(cpu_share({0, 1, 2, 3, 4}, 0, 3) == Cpus{0});
  CHECK(cpu_share({0, 1, 2, 3, 4}, 1, 3) == Cpus{1, 2});
  CHECK(cpu_share({0, 1, 2, 3, 4}, 2, 3) == Cpus{3, 4});
}

TEST_CASE("more ranks than CPUs use all of them") { CHECK(cpu_share({0, 1}, 2, 3) == Cpus{0, 1}); }

}  // namespace sgtc::runtime
