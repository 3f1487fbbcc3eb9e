// Schedules of matrix products for GPUs: every tile's depth is covered once, and nobody waits for
// one who waits.
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "matmul/sm_90a/schedule.h"
#include "support/catch.h"

using namespace sgtc::kernels;

namespace {

using Tile = std::tuple<uint32_t, uint16_t, uint16_t>;

Tile tile_of(const MatmulItem& item) { return {item.batch, item.row, item.column}; }

// How often each k-block of each tile is computed.
std::map<Tile, std::vector<int>> coverage(const MatmulSchedule& schedule, int64_t depth_blocks) {
  std::map<Tile, std::vector<int>> covered;
  for (const MatmulItem& item : schedule.items) {
    if (item.depth_begin == item.depth_end) continue;
    auto& blocks = covered[tile_of(item)];
    blocks.resize(static_cast<size_t>(depth_blocks));
    for (int block = item.depth_begin; block < item.depth_end; ++block) {
      ++blocks[static_cast<size_t>(block)];
    }
  }
  return covered;
}

void check_coverage(const MatmulForm& form, const MatmulWork& work, size_t tiles) {
  const MatmulSchedule schedule = schedule_matmul(form, work);
  const int64_t depth_blocks = (work.depth + 63) / 64;
  const auto covered = coverage(schedule, depth_blocks);
  CHECK(covered.size() == tiles);
  for (const auto& [tile, blocks] : covered) {
    CHECK(blocks == std::vector<int>(static_cast<size_t>(depth_blocks), 1));
  }
  CHECK(schedule.items.size() == static_cast<size_t>(schedule.rounds * work.blocks / form.cluster));
}

// The slots that owners add, in order, are those that others leave for the same tile, each once.
void check_slots(const MatmulSchedule& schedule) {
  std::map<uint16_t, Tile> left;
  for (const MatmulItem& item : schedule.items) {
    if (item.partials < 0) CHECK(left.emplace(item.slot, tile_of(item)).second);
  }
  CHECK(static_cast<int64_t>(left.size()) == schedule.slots);
  int64_t added = 0;
  for (const MatmulItem& item : schedule.items) {
    for (int i = 0; i < item.partials; ++i, ++added) {
      CHECK(left.at(static_cast<uint16_t>(item.slot + i)) == tile_of(item));
    }
  }
  CHECK(added == schedule.slots);
}

}  // namespace

TEST_CASE("a matmul schedule covers every tile once") {
  check_coverage(kPingPong, {2, 300, 200, 100, 132, 8, false}, 2 * 3 * 2);
  check_coverage(kPingPongPair, {1, 300, 200, 64, 4, 8, false}, 2 * 2);
  check_coverage(kCooperative, {1, 4096, 50257, 70, 132, 16, false}, 32 * 197);
  check_coverage(kCooperativePair, {1, 1, 1, 1, 2, 8, false}, 1);
}

TEST_CASE("a matmul schedule that splits the depth covers every k-block once") {
  for (const int64_t blocks : {124, 132}) {
    for (const int64_t columns : {256, 768, 3072, 16896}) {
      const MatmulWork work = {1, 768, columns, 32768, blocks, 8, true};
      check_coverage(kCooperativePair, work, static_cast<size_t>(3 * columns / 256));
      check_coverage(kCooperative, work, static_cast<size_t>(6 * columns / 256));
      check_slots(schedule_matmul(kCooperativePair, work));
      check_slots(schedule_matmul(kCooperative, work));
    }
  }
}

TEST_CASE("splitting the depth gives clusters equal work") {
  const MatmulWork work = {1, 768, 3072, 32768, 132, 8, true};
  const MatmulSchedule schedule = schedule_matmul(kCooperativePair, work);
  std::vector<int> length(66);
  for (size_t i = 0; i < schedule.items.size(); ++i) {
    length[i % 66] += schedule.items[i].depth_end - schedule.items[i].depth_begin;
  }
  // 36 tiles of 512 k-blocks: 18432 / 66 = 279.3. Clusters 0 to 35 take [0, 280) of a tile, the
  // others [280, 512) of one tile and a fifth of [280, 512) of another.
  for (const int blocks : length) CHECK(blocks <= 280);
}

TEST_CASE("a cluster that adds parts of sums leaves none behind them") {
  const MatmulSchedule schedule = schedule_matmul(kCooperative, {1, 640, 768, 32768, 132, 8, true});
  std::set<size_t> waiting;
  for (size_t i = 0; i < schedule.items.size(); ++i) {
    const size_t cluster = i % 132;
    if (schedule.items[i].partials > 0) waiting.insert(cluster);
    if (schedule.items[i].partials < 0) CHECK(waiting.count(cluster) == 0);
  }
  CHECK(waiting.size() == 15);
}

TEST_CASE("groups of the raster keep rows together") {
  const MatmulSchedule schedule = schedule_matmul(kPingPong, {1, 512, 384, 64, 6, 2, false});
  std::vector<std::pair<int, int>> order;
  for (const MatmulItem& item : schedule.items) order.emplace_back(item.row, item.column);
  CHECK(order == std::vector<std::pair<int, int>>{{0, 0},
                                                  {1, 0},
                                                  {0, 1},
                                                  {1, 1},
                                                  {0, 2},
                                                  {1, 2},
                                                  {2, 0},
                                                  {3, 0},
                                                  {2, 1},
                                                  {3, 1},
                                                  {2, 2},
                                                  {3, 2}});
}
