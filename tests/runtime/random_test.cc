#include "runtime/random.h"

#include <cmath>
#include <set>
#include <vector>

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("Philox gives the numbers of its paper's reference vectors") {
  CHECK(philox({0, 0, 0, 0}, 0) ==
        std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0U, ~0U, ~0U, ~0U}, ~uint64_t{0}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST_CASE("keys differ by seed and by name") {
  std::set<uint64_t> keys;
  for (int64_t seed : {0, 1, -1}) {
    for (const char* name : {"", "w", "v", "wv"}) keys.insert(random_key(seed, name));
  }
  CHECK(keys.size() == 12);
}

TEST_CASE("normal numbers have the asked mean and deviation") {
  std::vector<double> values(200000);
  fill_normal(1, 2, 3, static_cast<int64_t>(values.size()), values.data(), 0);
  double sum = 0;
  double squares = 0;
  int64_t within_one = 0;
  for (double value : values) {
    sum += value;
    squares += (value - 2) * (value - 2);
    within_one += std::abs(value - 2) < 3;
  }
  const double count = static_cast<double>(values.size());
  CHECK(sum / count == Approx(2).margin(0.03));
  CHECK(std::sqrt(squares / count) == Approx(3).margin(0.03));
  CHECK(static_cast<double>(within_one) / count == Approx(0.6827).margin(0.005));
}

TEST_CASE("uniform numbers stay inside their bounds and spread evenly") {
  std::vector<double> values(100000);
  fill_uniform(7, -1, 3, static_cast<int64_t>(values.size()), values.data(), 0);
  std::vector<int> bins(8);
  for (double value : values) {
    REQUIRE(value > -1);
    REQUIRE(value < 3);
    ++bins[static_cast<size_t>((value + 1) * 2)];
  }
  for (int bin : bins) CHECK(bin == Approx(12500).margin(500));
}

TEST_CASE("an element does not depend on where a piece begins") {
  std::vector<double> all(100);
  fill_normal(3, 0, 1, 100, all.data(), 0);
  std::vector<double> part(37);
  fill_normal(3, 0, 1, 37, part.data(), 50);
  for (size_t i = 0; i < part.size(); ++i) CHECK(part[i] == all[50 + i]);
}

TEST_CASE("permuted visits every index once") {
  for (int64_t count : {1, 2, 3, 7, 64, 65, 1000}) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = permuted(i, count, 11);
      REQUIRE(index >= 0);
      REQUIRE(index < count);
      seen.insert(index);
    }
    CHECK(static_cast<int64_t>(seen.size()) == count);
  }
}

TEST_CASE("permutations differ by key and are not the identity") {
  int equal_to_identity = 0;
  int equal_to_other = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    equal_to_identity += permuted(i, 1000, 1) == i;
    equal_to_other += permuted(i, 1000, 1) == permuted(i, 1000, 2);
  }
  CHECK(equal_to_identity < 10);
  CHECK(equal_to_other < 10);
}

}  // namespace sgtc::runtime
