#include "runtime/communication/groups.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// pp=2, dp=2, tp=2 with a communicator over each axis.
plan::Plan cube() {
  plan::Plan plan;
  plan.mesh = {{"pp", 2}, {"dp", 2}, {"tp", 2}};
  plan.communicators = {{"down", "pp", 0}, {"gradients", "dp", 0}, {"partials", "tp", 0}};
  plan.positions.resize(2);
  for (plan::Position& position : plan.positions) {
    position.buffers = {{"h", "slot", "f32", {25}, 100, 0, 128, 2}};
    plan::Task reduce;
    reduce.kind = "all_reduce";
    reduce.communicator = "gradients";
    reduce.inputs = reduce.outputs = {{"h", {}, 0}, {"h", {}, 40}};
    position.tasks = {reduce};
  }
  plan::Task send;
  send.kind = "send";
  send.communicator = "down";
  send.peer = 1;
  send.inputs = {{"h", {}, 0}};
  plan.positions[0].tasks.push_back(send);
  return plan;
}

}  // namespace

TEST_CASE("ranks count tp first, then dp, then pp") {
  const plan::Plan plan = cube();
  CHECK(world_size(plan) == 8);
  CHECK(coordinates_of(plan, 0) == Coordinates{0, 0, 0});
  CHECK(coordinates_of(plan, 1) == Coordinates{0, 0, 1});
  CHECK(coordinates_of(plan, 2) == Coordinates{0, 1, 0});
  CHECK(coordinates_of(plan, 4) == Coordinates{1, 0, 0});
  for (int64_t rank = 0; rank < 8; ++rank) {
    CHECK(rank_at(plan, coordinates_of(plan, rank)) == rank);
  }
}

TEST_CASE("a communicator has one group for each combination of the other axes") {
  const std::vector<RankGroup> groups = groups_of(cube());
  std::vector<std::vector<int64_t>> ranks;
  for (const RankGroup& group : groups) ranks.push_back(group.ranks);
  CHECK(ranks == std::vector<std::vector<int64_t>>{{0, 4},
                                                   {1, 5},
                                                   {2, 6},
                                                   {3, 7},  // pp
                                                   {0, 2},
                                                   {1, 3},
                                                   {4, 6},
                                                   {5, 7},  // dp
                                                   {0, 1},
                                                   {2, 3},
                                                   {4, 5},
                                                   {6, 7}});  // tp
  CHECK(groups[2].member_of(6) == 1);
  CHECK(groups[2].member_of(5) == -1);
}

TEST_CASE("a group knows what is exchanged over it") {
  const std::vector<RankGroup> groups = groups_of(cube());
  REQUIRE(groups[0].channels.size() == 1);
  CHECK(groups[0].channels[0].from == 0);
  CHECK(groups[0].channels[0].to == 1);
  CHECK(groups[0].channels[0].bytes == 100);
  CHECK(groups[0].collective_bytes == -1);
  CHECK(groups[4].channels.empty());
  CHECK(groups[4].collective_bytes == 140);
  CHECK(groups[8].collective_bytes == -1);
}

}  // namespace sgtc::runtime
