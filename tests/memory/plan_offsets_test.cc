// Offsets in the arena. `is_valid` is the independent checker: it compares all pairs.
#include "memory/plan_offsets.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "support/catch.h"

using namespace sgtc;

namespace {

bool overlap(int64_t a_first, int64_t a_last, int64_t b_first, int64_t b_last) {
  return a_first <= b_last && b_first <= a_last;
}

bool is_live_at(const Interval& interval, int64_t time) {
  const bool in_hole = interval.hole_first <= time && time <= interval.hole_last;
  return interval.first <= time && time <= interval.last && !in_hole;
}

bool overlap(const Interval& a, const Interval& b) {
  for (int64_t time = std::max(a.first, b.first); time <= std::min(a.last, b.last); ++time) {
    if (is_live_at(a, time) && is_live_at(b, time)) return true;
  }
  return false;
}

bool is_valid(const std::vector<Interval>& intervals, const Offsets& offsets) {
  if (offsets.offsets.size() != intervals.size()) return false;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const int64_t begin = offsets.offsets[i];
    if (begin < 0 || begin % intervals[i].alignment != 0) return false;
    if (begin + intervals[i].size > offsets.peak) return false;
    for (size_t j = 0; j < i; ++j) {
      if (intervals[i].size == 0 || intervals[j].size == 0) continue;
      const bool time = overlap(intervals[i], intervals[j]);
      const bool space = overlap(begin, begin + intervals[i].size - 1, offsets.offsets[j],
                                 offsets.offsets[j] + intervals[j].size - 1);
      if (time && space) return false;
    }
  }
  return true;
}

std::vector<Interval> random_intervals(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<int64_t>(random() % 200);
    const auto length = static_cast<int64_t>(random() % (random() % 4 == 0 ? 100 : 8));
    const auto size = static_cast<int64_t>(random() % 20) * 64 + static_cast<int64_t>(random() % 3);
    intervals.push_back({size, first, first + length, 64});
  }
  return intervals;
}

// A step of `layers` layers: every layer keeps one large and two small activations from forward to
// backward and has a temporary in each direction.
std::vector<Interval> training_step(int64_t layers) {
  std::vector<Interval> intervals;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t forward = layer * 4;
    const int64_t backward = layers * 8 - layer * 4;
    intervals.push_back({4096, forward, backward + 3});
    intervals.push_back({1024, forward + 1, backward + 2});
    intervals.push_back({64, forward + 2, backward + 1});
    intervals.push_back({16384, forward + 1, forward + 2});
    intervals.push_back({16384, backward, backward + 1});
    intervals.push_back({4096, backward + 2, backward + 5});
  }
  return intervals;
}

// By placing in every order, each interval as low as it goes: one of them is best.
int64_t least_peak(const std::vector<Interval>& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t least = INT64_MAX;
  do {
    std::vector<std::pair<size_t, int64_t>> placed;
    int64_t peak = 0;
    for (const size_t i : order) {
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const auto& [other, begin] : placed) {
          const Interval& below = intervals[other];
          if (!overlap(below, intervals[i])) continue;
          if (!overlap(begin, begin + below.size - 1, offset, offset + intervals[i].size - 1)) {
            continue;
          }
          offset = begin + below.size;
          moved = true;
        }
      }
      placed.emplace_back(i, offset);
      peak = std::max(peak, offset + intervals[i].size);
    }
    least = std::min(least, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace

TEST_CASE("no intervals need no arena") { CHECK(plan_offsets(std::vector<Interval>{}).peak == 0); }

TEST_CASE("intervals that do not overlap share their bytes") {
  // 128 live at 0..1, 128 at 2..3: one place serves both.
  const Offsets offsets = plan_offsets({{128, 0, 1}, {128, 2, 3}});
  CHECK(offsets.offsets == std::vector<int64_t>{0, 0});
  CHECK(offsets.peak == 128);
}

TEST_CASE("intervals that meet at one position do not share bytes") {
  const std::vector<Interval> intervals = {{128, 0, 2}, {128, 2, 3}};
  const Offsets offsets = plan_offsets(intervals);
  CHECK(offsets.peak == 256);
  CHECK(is_valid(intervals, offsets));
}

TEST_CASE("a gap is filled before the arena grows") {
  // 256 at 0..9, 64 at 0..4, 192 at 0..9, then 64 at 5..9 fits where the first 64 were.
  const std::vector<Interval> intervals = {{256, 0, 9}, {64, 0, 4}, {192, 0, 9}, {64, 5, 9}};
  const Offsets offsets = plan_offsets(intervals);
  CHECK(offsets.peak == 512);
  CHECK(offsets.offsets[1] == offsets.offsets[3]);
}

TEST_CASE("offsets respect the alignment") {
  const std::vector<Interval> intervals = {{3, 0, 5, 4}, {100, 0, 5, 4096}, {5, 0, 5, 64}};
  CHECK(is_valid(intervals, plan_offsets(intervals)));
}

TEST_CASE("empty buffers take no bytes") {
  const std::vector<Interval> intervals = {{0, 0, 5}, {64, 0, 5}, {0, 2, 3}};
  CHECK(plan_offsets(intervals).peak == 64);
}

TEST_CASE("the bound is the largest live set") {
  CHECK(live_bound({{64, 0, 2}, {128, 2, 4}, {64, 3, 5}}) == 192);
  CHECK(live_bound({}) == 0);
  CHECK(live_bound({{1, -1, 7}}) == 64);
}

TEST_CASE("random intervals are placed validly and near the bound") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::vector<Interval> intervals = random_intervals(seed, 20 + static_cast<int>(seed) * 6);
    const Offsets offsets = plan_offsets(intervals);
    INFO("seed " << seed);
    REQUIRE(is_valid(intervals, offsets));
    CHECK(static_cast<double>(offsets.peak) <= 1.05 * static_cast<double>(live_bound(intervals)));
  }
}

TEST_CASE("a training step is placed within five percent of the bound") {
  for (const int64_t layers : {1, 3, 12, 48, 100}) {
    const std::vector<Interval> intervals = training_step(layers);
    const Offsets offsets = plan_offsets(intervals);
    INFO(layers << " layers");
    REQUIRE(is_valid(intervals, offsets));
    CHECK(static_cast<double>(offsets.peak) <= 1.05 * static_cast<double>(live_bound(intervals)));
  }
}

TEST_CASE("equal arguments give equal offsets") {
  const std::vector<Interval> intervals = random_intervals(7, 100);
  CHECK(plan_offsets(intervals).offsets == plan_offsets(intervals).offsets);
}

TEST_CASE("small instances get the least peak") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Interval> intervals;
    for (int i = 0; i < 7; ++i) {
      const auto first = static_cast<int64_t>(random() % 6);
      const auto length = static_cast<int64_t>(random() % 3);
      intervals.push_back({static_cast<int64_t>(1 + random() % 6) * 64, first, first + length, 64});
    }
    const Offsets offsets = plan_offsets(intervals);
    INFO("seed " << seed);
    REQUIRE(is_valid(intervals, offsets));
    CHECK(offsets.peak == least_peak(intervals));
  }
}

TEST_CASE("what lasts into the next micro-batch leaves its hole to others") {
  // 128 live at 0..2 and 8..9; the second fits between, the third does not.
  const std::vector<Interval> intervals = {{128, 0, 9, 64, 3, 7}, {128, 3, 7}, {64, 7, 8}};
  const Offsets offsets = plan_offsets(intervals);
  CHECK(is_valid(intervals, offsets));
  CHECK(offsets.offsets[0] == offsets.offsets[1]);
  CHECK(offsets.peak == 192);
  CHECK(live_bound(intervals) == 192);
}

TEST_CASE("random intervals with holes are placed without collisions, near what is live") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Interval> intervals = random_intervals(seed, 60);
    for (size_t i = 0; i < intervals.size(); i += 12) {
      intervals[i].last += 30;
      intervals[i].hole_first = intervals[i].first + 4;
      intervals[i].hole_last = intervals[i].last - 4;
    }
    const Offsets offsets = plan_offsets(intervals);
    INFO("seed " << seed);
    CHECK(is_valid(intervals, offsets));
    CHECK(static_cast<double>(offsets.peak) <= 1.1 * static_cast<double>(live_bound(intervals)));
  }
}
