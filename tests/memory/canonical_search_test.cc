#include "memory/canonical_search.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

constexpr int64_t kManySteps = 1'000'000;

}  // namespace

TEST_CASE("a placement at the limit is found") {
  // 256 at 0..9, 64 at 0..4, 192 at 0..9 and 64 at 5..9 fill 512 bytes.
  const std::vector<Interval> intervals = {{256, 0, 9}, {64, 0, 4}, {192, 0, 9}, {64, 5, 9}};
  const CanonicalSearch found = search_canonical(intervals, 512, kManySteps);
  REQUIRE(found.placement.has_value());
  CHECK(found.placement->peak == 512);
  CHECK(!found.is_impossible);
}

TEST_CASE("less than what is live is impossible") {
  const std::vector<Interval> intervals = {{256, 0, 2}, {64, 2, 4}};
  const CanonicalSearch found = search_canonical(intervals, 319, kManySteps);
  CHECK(!found.placement.has_value());
  CHECK(found.is_impossible);
}

TEST_CASE("a search that may take no steps proves nothing") {
  const std::vector<Interval> intervals = {{256, 0, 2}, {64, 2, 4}};
  const CanonicalSearch found = search_canonical(intervals, 320, 0);
  CHECK(!found.placement.has_value());
  CHECK(!found.is_impossible);
}

TEST_CASE("sizes count with their alignment and empty buffers not at all") {
  const std::vector<Interval> intervals = {{3, 0, 1}, {0, 0, 1}, {1, 1, 2}};
  CHECK(search_canonical(intervals, 128, kManySteps).placement.has_value());
  CHECK(search_canonical(intervals, 127, kManySteps).is_impossible);
}

TEST_CASE("buffers that never meet are searched apart") {
  // Twenty pairs one after the other: in one search their orders would multiply.
  std::vector<Interval> intervals;
  for (int64_t i = 0; i < 20; ++i) {
    intervals.push_back({64 * (1 + i % 3), 3 * i, 3 * i + 1});
    intervals.push_back({64 * (4 - i % 3), 3 * i + 1, 3 * i + 2});
  }
  const CanonicalSearch found = search_canonical(intervals, 320, kManySteps);
  REQUIRE(found.placement.has_value());
  CHECK(found.steps < 20000);
}
