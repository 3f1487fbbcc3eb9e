#include "runtime/batches.h"

#include "runtime/arena.h"
#include "runtime/regression_program.h"
#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kBatch = 2;

// A plan of `replicas` with two micro-batches of kBatch rows, fed with "x".
plan::Plan plan_of(int64_t replicas) {
  plan::Plan plan;
  plan.mesh = {{"pp", 1}, {"dp", replicas}, {"tp", 1}};
  plan.micro_batches = 2;
  plan.micro_batch_rows = kBatch;
  plan.feeds = {{"x", "f32", {kBatch}, 0, "node"}};
  plan.positions.resize(1);
  add_buffer(plan.positions[0], "x", "micro_batch", {kBatch}, kBatch * 4, 2);
  return plan;
}

// The same with weights of rows, "w".
plan::Plan weighted_plan_of(int64_t replicas) {
  plan::Plan plan = plan_of(replicas);
  plan.row_weights = "w";
  plan.feeds.push_back({"w", "f32", {kBatch}, 0, ""});
  add_buffer(plan.positions[0], "w", "micro_batch", {kBatch}, kBatch * 4, 2);
  return plan;
}

// The samples that a replica gets in one step, by micro-batch and row; samples are numbered.
std::vector<float> rows_of(const plan::Plan& plan, int64_t replica, const SampleOrder& order,
                           DataPosition& position, const char* buffer = "x") {
  const TemporaryFolder folder;
  std::vector<float> samples;
  for (int64_t i = 0; i < order.samples; ++i) samples.push_back(static_cast<float>(i));
  write_npy(folder / "x.npy", "f32", {order.samples}, samples);
  const std::vector<DataFile> files = open_data_files({{{"x"}, folder / "x.npy"}});
  DataSet data;
  REQUIRE_FALSE(data.bind(plan, files));
  const Arena arena(plan.positions[0].arena_bytes);
  const PlanMemory memory(plan.positions[0], arena);
  const bool pads = !plan.row_weights.empty();
  load_step(plan, replica, Feeder(plan, data, memory), order, pads, position);
  std::vector<float> rows;
  for (int64_t m = 0; m < 2; ++m) {
    const float* x = reinterpret_cast<const float*>(memory.address(memory.buffer(buffer), m));
    rows.insert(rows.end(), x, x + kBatch);
  }
  return rows;
}

}  // namespace

TEST_CASE("each replica takes its own rows of a step, and all move on by all of them") {
  const plan::Plan plan = plan_of(3);
  for (int64_t replica = 0; replica < 3; ++replica) {
    DataPosition position{0, 12};
    const float first = static_cast<float>(12 + replica * 4);
    CHECK(rows_of(plan, replica, {24, false, 0}, position) ==
          std::vector<float>{first, first + 1, first + 2, first + 3});
    CHECK(position.row == 24);
  }
}

TEST_CASE("a rest that does not fill a step of all replicas is dropped by all") {
  const plan::Plan plan = plan_of(2);
  for (int64_t replica = 0; replica < 2; ++replica) {
    DataPosition position{0, 8};
    CHECK(rows_of(plan, replica, {15, false, 0}, position)[0] == static_cast<float>(replica * 4));
    CHECK(position.epoch == 1);
    CHECK(position.row == 8);
  }
}

TEST_CASE("with weights, a rest is followed by copies of its last row that do not count") {
  const plan::Plan plan = weighted_plan_of(2);
  const SampleOrder order{11, false, 0};
  const std::vector<std::vector<float>> samples = {{8, 9, 10, 10}, {10, 10, 10, 10}};
  const std::vector<std::vector<float>> weights = {{1, 1, 1, 0}, {0, 0, 0, 0}};
  for (int64_t replica = 0; replica < 2; ++replica) {
    DataPosition position{0, 8};
    CHECK(rows_of(plan, replica, order, position) == samples[static_cast<size_t>(replica)]);
    CHECK(position.epoch == 0);
    CHECK(position.row == 11);
    DataPosition again{0, 8};
    CHECK(rows_of(plan, replica, order, again, "w") == weights[static_cast<size_t>(replica)]);
    CHECK(rows_of(plan, replica, order, again, "w") == std::vector<float>{1, 1, 1, 1});
    CHECK(again.epoch == 1);
    CHECK(again.row == 8);
  }
}

TEST_CASE("a data set smaller than a step is one padded step an epoch") {
  const plan::Plan plan = weighted_plan_of(1);
  DataPosition position;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    CHECK(rows_of(plan, 0, {1, true, 7}, position, "w") == std::vector<float>{1, 0, 0, 0});
    CHECK(position.epoch == epoch);
  }
}

TEST_CASE("replicas share one order of the samples") {
  const SampleOrder order{16, true, 5};
  DataPosition whole;
  DataPosition again;
  std::vector<float> expected;
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> rows = rows_of(plan_of(1), 0, order, whole);
    expected.insert(expected.end(), rows.begin(), rows.end());
  }
  std::vector<float> found = rows_of(plan_of(2), 0, order, again);
  again = {};
  const std::vector<float> second = rows_of(plan_of(2), 1, order, again);
  found.insert(found.end(), second.begin(), second.end());
  CHECK(found == expected);
}

}  // namespace sgtc::runtime
