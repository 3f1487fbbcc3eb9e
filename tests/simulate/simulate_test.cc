// Simulated steps whose times follow from arithmetic.
#include "simulate/simulate.h"

#include "pipeline_plan.h"
#include "simulate/ranks.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// One position that computes `before`, reduces, and computes `beside` meanwhile.
plan::Plan reducing_plan(int64_t replicas, int64_t blocks = 1) {
  plan::Plan plan = empty_plan(1, replicas, 1, 100, blocks);
  plan::Position& position = plan.positions[0];
  position.tasks.push_back(communication_task("reduce", "all_reduce", "dp.grad", -1));
  EntryList list;
  const int64_t first = list.add("forward", 0, 0);
  list.add("reduce", 0, 1, {first});
  list.add("backward", 0, 0);
  position.schedules["train"] = list.take();
  return plan;
}

Hardware with_link(Hardware hardware, double seconds) {
  hardware.host = {1e30, seconds / 2, 0};  // two rounds for two members
  return hardware;
}

}  // namespace

TEST_CASE("the bubble of equal stages is that of GPipe and 1F1B") {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
    for (const int64_t stages : {1, 2, 3, 4, 8}) {
      for (const int64_t micro_batches : {1, 2, 4, 8, 32}) {
        INFO(stages << " stages, " << micro_batches << " micro-batches");
        const plan::Plan plan = pipeline_plan(schedule, stages, micro_batches);
        for (const Hardware& hardware : {test_cpu(stages, stages), test_gpu(1)}) {
          const Simulation simulation = simulate(plan, hardware);
          const double expected =
              static_cast<double>(stages - 1) / static_cast<double>(micro_batches + stages - 1);
          CHECK(simulation.bubble == Approx(expected).margin(1e-9));
          CHECK(simulation.seconds ==
                Approx(300.0 * static_cast<double>(micro_batches + stages - 1)));
        }
      }
    }
  }
}

TEST_CASE("the time of a position is computing, exposed communication and idleness") {
  Hardware hardware = test_cpu(4, 4);
  hardware.host = {1, 5, 0};
  const Simulation simulation = simulate(pipeline_plan(PipelineSchedule::k1F1B, 4, 6), hardware);
  for (const SimulatedPosition& position : simulation.positions) {
    CHECK(position.computing + position.exposed + position.idle == Approx(simulation.seconds));
    CHECK(position.exposed <= position.communicating);
  }
}

TEST_CASE("a reduction beside kernels is hidden, what is longer is exposed") {
  const plan::Plan plan = reducing_plan(2);
  const Simulation hidden = simulate(plan, with_link(test_gpu(4), 150));
  CHECK(hidden.seconds == Approx(300));
  CHECK(hidden.positions[0].exposed == Approx(0).margin(1e-9));
  CHECK(hidden.positions[0].overlap_ratio() == Approx(150.0 / 300));
  const Simulation exposed = simulate(plan, with_link(test_gpu(4), 500));
  CHECK(exposed.seconds == Approx(600));
  CHECK(exposed.positions[0].exposed == Approx(300));
  CHECK(exposed.positions[0].overlap_ratio() == Approx(200.0 / 500));
  CHECK(exposed.overlap_ratio == Approx(200.0 / 500));
}

TEST_CASE("communication takes units from the kernels beside it") {
  Hardware hardware = with_link(test_gpu(4), 100);
  hardware.communication_blocks = 1;
  // Alone 25 and 50 seconds on four units; for 100 seconds three are left of the second kernel's.
  const Simulation simulation = simulate(reducing_plan(2, 4), hardware);
  CHECK(simulation.positions[0].entries[2].span.end == Approx(25 + 50.0 * 4 / 3));
  // A kernel that needs three of them alone is as fast as before.
  const Simulation small = simulate(reducing_plan(2, 3), hardware);
  CHECK(small.positions[0].entries[2].span.end == Approx(100.0 / 3 + 200.0 / 3));
}

TEST_CASE("ranks of a host share its cores") {
  // Two replicas on one core: each kernel takes twice as long.
  plan::Plan plan = empty_plan(1, 2, 1, 100);
  EntryList list;
  list.add("forward", 0, 0);
  plan.positions[0].schedules["train"] = list.take();
  CHECK(simulate(plan, test_cpu(1)).seconds == Approx(200));
  CHECK(simulate(plan, test_cpu(2)).seconds == Approx(100));
  CHECK(simulate(plan, test_cpu(1, 1)).seconds == Approx(100));
}

TEST_CASE("a kernel is shared by the threads of a rank as far as it has blocks") {
  plan::Plan plan = empty_plan(1, 1, 1, 100, 3);
  EntryList list;
  list.add("forward", 0, 0);
  plan.positions[0].schedules["train"] = list.take();
  CHECK(simulate(plan, test_cpu(2)).seconds == Approx(50));
  CHECK(simulate(plan, test_cpu(8)).seconds == Approx(100.0 / 3));
}

TEST_CASE("a kernel with an argument of 16 bits has the rate of its type") {
  plan::Plan plan = empty_plan(1, 1, 1, 100);
  plan.positions[0].buffers.push_back({"h", "step", "bf16", {2}, 4, 0, 0, 1});
  plan.kernels[0].access = {"update", "read"};
  plan.positions[0].tasks[0].calls[0].arguments.push_back({"h", {}, 0});
  EntryList list;
  list.add("forward", 0, 0);
  list.add("backward", 0, 0);
  plan.positions[0].schedules["train"] = list.take();
  Hardware hardware = test_gpu(1);
  hardware.rates["loop bf16"] = {10, 1e30, 1e-30};
  const Simulation simulation = simulate(plan, hardware);
  CHECK(simulation.positions[0].entries[0].span.end == Approx(10));
  CHECK(simulation.positions[0].entries[1].span.end == Approx(210));
}

TEST_CASE("communications of a rank on one link share its rate") {
  plan::Plan plan = empty_plan(1, 2, 1, 100);
  plan::Position& position = plan.positions[0];
  plan.communicators.push_back({"dp.other", "dp", 0});
  position.tasks.push_back(communication_task("reduce", "all_reduce", "dp.grad", -1));
  position.tasks.push_back(communication_task("gather", "all_reduce", "dp.other", -1));
  EntryList list;
  list.add("reduce", 0, 1);
  list.add("gather", 0, 2);
  position.schedules["train"] = list.take();
  const Simulation simulation = simulate(plan, with_link(test_gpu(4), 100));
  CHECK(simulation.seconds == Approx(200));
  CHECK(simulation.positions[0].entries[0].span == simulation.positions[0].entries[1].span);
  // On a CPU one thread issues them one after the other.
  const Simulation serial = simulate(plan, with_link(test_cpu(4), 100));
  CHECK(serial.positions[0].entries[1].span.begin == Approx(100));
}

TEST_CASE("links are counted at the sender") {
  const Simulation simulation =
      simulate(pipeline_plan(PipelineSchedule::kGPipe, 2, 3), test_cpu(2, 1));
  REQUIRE(simulation.links.size() == 2);
  CHECK(simulation.links[0].communicator == "pp.backward");
  CHECK(simulation.links[0].from == 1);
  CHECK(simulation.links[0].to == 0);
  CHECK(simulation.links[1].messages == 3);
  CHECK(simulation.links[1].network_bytes == 24);
  CHECK(simulation.links[1].host_bytes == 0);
}

TEST_CASE("one rank stands for replicas that are alike") {
  const plan::Plan plan = pipeline_plan(PipelineSchedule::k1F1B, 4, 8, 6);
  CHECK(RankLayout(plan, test_cpu(1)).ranks().size() == 4);
  CHECK(RankLayout(plan, test_cpu(1, 3)).ranks().size() == 4);
  CHECK(RankLayout(plan, test_cpu(1, 12)).ranks().size() == 4);
  CHECK(RankLayout(plan, test_cpu(1, 4)).ranks().size() == 24);
}

TEST_CASE("ranks that stand for others take the time of all ranks") {
  plan::Plan plan = pipeline_plan(PipelineSchedule::k1F1B, 2, 3, 4);
  for (plan::Position& position : plan.positions) {
    position.tasks.push_back(communication_task("reduce", "all_reduce", "dp.grad", -1));
    std::vector<plan::Entry>& entries = position.schedules["train"];
    plan::Entry reduce;
    reduce.task = "reduce";
    reduce.stream = 3;
    reduce.waits = {static_cast<int64_t>(entries.size()) - 1};
    entries.push_back(reduce);
  }
  Hardware hardware = test_gpu(1);
  hardware.host = hardware.network = {1, 10, 0};
  const Simulation alike = simulate(plan, hardware);
  CHECK(alike.simulated_ranks == 2);
  hardware.ranks_per_host = 3;  // replicas of a position have different neighbours
  const Simulation each = simulate(plan, hardware);
  CHECK(each.simulated_ranks == 8);
  CHECK(each.seconds == Approx(alike.seconds));
  CHECK(each.bubble == Approx(alike.bubble));
}

TEST_CASE("large meshes are simulated by position") {
  const plan::Plan plan = pipeline_plan(PipelineSchedule::k1F1B, 16, 64, 256);
  const Simulation simulation = simulate(plan, test_gpu(1));
  CHECK(simulation.ranks == 4096);
  CHECK(simulation.simulated_ranks == 16);
  CHECK(simulation.bubble == Approx(15.0 / 79));
}

TEST_CASE("a plan without the schedule takes no time") {
  CHECK(simulate(empty_plan(2, 2, 1, 100), test_cpu(1), "evaluate").seconds == 0);
}
