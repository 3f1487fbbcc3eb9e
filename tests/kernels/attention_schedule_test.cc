// Schedules of attention for GPUs.
#include <algorithm>
#include <set>
#include <tuple>

#include "attention/sm_90a/schedule.h"
#include "support/catch.h"

using namespace sgtc::kernels;

TEST_CASE("an attention schedule covers every group of queries once") {
  const AttentionWork work = {2, 6, 3, 1000, 1000, true, 7};
  const AttentionSchedule schedule = schedule_queries(2, work);
  CHECK(schedule.items.size() == static_cast<size_t>(schedule.rounds * 7));
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
  for (const AttentionItem& item : schedule.items) {
    if (item.is_work == 0) continue;
    CHECK(seen.emplace(item.batch, item.head, item.group).second);
    CHECK(item.key_head == item.head / 2);
  }
  CHECK(seen.size() == 2 * 6 * 8);  // 1000 queries are 8 groups of 128
}

TEST_CASE("an attention schedule has no work after a block's last item") {
  const AttentionSchedule schedule = schedule_queries(4, {1, 5, 5, 700, 900, false, 4});
  for (size_t block = 0; block < 4; ++block) {
    bool ended = false;
    for (int64_t round = 0; round < schedule.rounds; ++round) {
      const bool is_work = schedule.items[static_cast<size_t>(round) * 4 + block].is_work != 0;
      CHECK(!(ended && is_work));
      ended = !is_work;
    }
  }
}

TEST_CASE("an attention schedule gives blocks about the same work") {
  const AttentionWork work = {32, 12, 12, 1024, 1024, true, 132};
  const AttentionSchedule schedule = schedule_queries(4, work);
  std::vector<int64_t> keys(132);
  for (size_t i = 0; i < schedule.items.size(); ++i) {
    if (schedule.items[i].is_work != 0) keys[i % 132] += 256 * (schedule.items[i].group + 1) + 128;
  }
  const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
  CHECK(*most - *least <= 1024 + 128);
}

TEST_CASE("an attention schedule of keys covers every group of keys once") {
  const AttentionSchedule schedule = schedule_keys(2, {2, 6, 3, 700, 1000, true, 7});
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen;
  for (const AttentionItem& item : schedule.items) {
    if (item.is_work != 0) CHECK(seen.emplace(item.batch, item.key_head, item.group).second);
  }
  CHECK(seen.size() == 2 * 3 * 8);
}
