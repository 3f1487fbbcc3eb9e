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

// The samples that a replica gets in one step, by micro-batch and row; samples are numbered.
std::vector<float> rows_of(const plan::Plan& plan, int64_t replica, const SampleOrder& order,
                           DataPosition& position) {
  const TemporaryFolder folder;
  std::vector<float> samples;
  for (int64_t i = 0; i < order.samples; ++i) samples.push_back(static_cast<float>(i));
  write_npy(folder / "x.npy", "f32", {order.samples}, samples);
  const std::vector<DataFile> files = open_data_files({{{"x"}, folder / "x.npy"}});
  DataSet data;
  REQUIRE_FALSE(data.bind(plan, files));
  const Arena arena(plan.positions[0].arena_bytes);
  const PlanMemory memory(plan.positions[0], arena);
  load_step(plan, replica, Feeder(data, memory), order, position);
  std::vector<float> rows;
  for (int64_t m = 0; m < 2; ++m) {
    const float* x = reinterpret_cast<const float*>(memory.address(memory.buffer("x"), m));
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
