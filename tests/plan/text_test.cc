// The text of plans for people.
#include "plan/text.h"

#include <algorithm>

#include "plan/live_buffers.h"
#include "plan/quantities.h"
#include "plan/schedule_chart.h"
#include "plan_files.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kParallelPair = R"(
plan "parallel_pair"
  target        cpu x86-64-v3
  mesh          pp=1,dp=1,tp=2 (2 ranks)
  micro-batches 2 of 8 rows per replica, 16 rows per step
  parameters    2,064 in 3 tensors
  optimizer     sgd
  accumulators  2,065 in 4 tensors
  fingerprint   -

position 0, stage 0
  tasks                    calls      flops       bytes
    forward_pair             3     16.5 k     8.1 KiB
    reduce_y             all_reduce on forward
    forward_loss             1        128       516 B
    backward_pair            5     32.9 k    19.5 KiB
    reduce_ds            all_reduce on backward
    backward_scale           1        256     1.1 KiB
    update                   3      2.1 k    12.2 KiB
                                               calls in
  layers, per step                parameters  forward backward  else      flops       bytes
    other                            2,064        8       12     3    101.7 k    70.5 KiB
  kernels: 12 kernels, 23 calls per step
     calls kind           flops       bytes  nodes
         2 matmul         8.2 k     3.5 KiB  down
         2 matmul         8.2 k     4.5 KiB  down, relu
         2 matmul         8.2 k     5.5 KiB  down
         2 matmul         8.2 k     3.5 KiB  up, relu
         2 matmul         8.2 k     3.5 KiB  up
         2 matmul         8.2 k     5.5 KiB  up
         2 loop           1.0 k     6.0 KiB  -
         2 loop             256     1.1 KiB  scale
         2 loop             128       512 B  mean
         2 loop             128       516 B  mean
         2 loop             128     1.1 KiB  scale
         1 loop              32       196 B  -
  arena 13.2 KiB, of it persistent 8.2 KiB
  peak of live buffers in train 12.2 KiB, in backward_pair of micro-batch 0, call 2; the largest are
       2.0 KiB  persistent  down
       2.0 KiB  persistent  grad.down
       2.0 KiB  persistent  grad.up
       2.0 KiB  persistent  up
       1.0 KiB  task        dh
       1.0 KiB  slot        h
       1.0 KiB  micro_batch x in 2 instances
         512 B  task        dy
  schedule train, 13 entries
    stream 0 | F0      F0 B0       B0 F1      F1 B1       B1 U
    stream 1 |    +y.0                   +y.1
    stream 2 |               +ds.0                  +ds.1

superfluous: 0 collectives of one rank, 0 empty kernel calls
)";

}  // namespace

TEST_CASE("the text of a plan shows all that it does") {
  CHECK("\n" + to_text(load_plan("tp2.json")) == kParallelPair);
}

TEST_CASE("every position has its chart with a row per stream") {
  const std::string text = to_text(load_plan("zb-v.json"));
  CHECK_THAT(text, ContainsSubstring("position 0, stages 0, 3\n"));
  CHECK_THAT(text,
             ContainsSubstring("stream 0 | F0.0       F0.1       F0.2             F3.0 I3.0"));
  CHECK_THAT(text, ContainsSubstring("position 1, stages 1, 2\n"));
  CHECK_THAT(text, ContainsSubstring("stream 4 |"));
}

TEST_CASE("collectives of one rank and empty kernels are counted") {
  plan::Plan plan = load_plan("tp2.json");
  plan.mesh[2].size = 1;
  plan.kernels[0].bytes = 0;
  CHECK_THAT(to_text(plan),
             ContainsSubstring("superfluous: 2 collectives of one rank, 1 empty kernel call"));
}

TEST_CASE("kernels of GPUs are printed with their launch") {
  plan::Plan plan = load_plan("tp2.json");
  plan.target = "sm_90a";
  plan.cpu.clear();
  plan.multiprocessors = 132;
  for (plan::Kernel& kernel : plan.kernels) {
    kernel.blocks = 132;
    kernel.launch = {384, 200 << 10, 2, false, {}};
  }
  const std::string text = to_text(plan);
  CHECK_THAT(text, ContainsSubstring("  target        sm_90a, 132 multiprocessors\n"));
  CHECK_THAT(
      text,
      ContainsSubstring(
          "     calls kind           flops       bytes     grid threads      shared  nodes\n"
          "         2 matmul         8.2 k     3.5 KiB      132     384   200.0 KiB  down\n"));
}

TEST_CASE("kernels that work for several layers belong to none") {
  plan::Plan plan = load_plan("tp2.json");
  for (plan::Kernel& kernel : plan.kernels) kernel.launch.indirect = true;
  CHECK_THAT(to_text(plan), ContainsSubstring("    several layers  "));
}

TEST_CASE("a prediction is printed when there is one") {
  plan::Plan plan = load_plan("tp2.json");
  plan.prediction = {0.0125, 0.25, {1}};
  CHECK_THAT(to_text(plan), ContainsSubstring("step 12.5 ms, bubble 25%"));
}

TEST_CASE("quantities have readable units") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(int64_t{3} << 30) == "3.0 GiB");
  CHECK(count_text(999) == "999");
  CHECK(count_text(124439808) == "124.4 M");
  CHECK(exact_text(124439808) == "124,439,808");
  CHECK(exact_text(-1234) == "-1,234");
  CHECK(exact_text(12) == "12");
  CHECK(seconds_text(0.0025) == "2.5 ms");
  CHECK(plural(1, "kernel") == "1 kernel");
  CHECK(plural(0, "kernel") == "0 kernels");
}

TEST_CASE("the live peak counts instances of slots and rings") {
  const plan::Plan plan = load_plan("zero3.json");
  const LivePeak peak = find_live_peak(plan, plan.positions[0], "train");
  REQUIRE(!peak.live.empty());
  CHECK(peak.bytes <= plan.positions[0].arena_bytes);
  CHECK(peak.live[0].buffer->name == "weights");
  CHECK(peak.live[0].instances == 2);
}

TEST_CASE("workspace is live while a kernel runs alone") {
  plan::Plan plan;
  plan.kernels.resize(2);
  plan.kernels[0].symbol = "make";
  plan.kernels[0].access = {"write", "write"};
  plan.kernels[1].symbol = "use";
  plan.kernels[1].access = {"read"};
  plan::Position position;
  position.buffers.resize(2);
  position.buffers[0].name = "workspace";
  position.buffers[0].bytes = 1000;
  position.buffers[1].name = "x";
  position.buffers[1].bytes = 10;
  for (plan::Buffer& buffer : position.buffers) {
    buffer.scope = "slot";
    buffer.count = 2;
  }
  position.tasks.resize(2);
  position.tasks[0].name = "forward";
  position.tasks[0].calls = {{"make", {{"workspace", {}, 0}, {"x", {}, 0}}, {}}};
  position.tasks[1].name = "backward";
  position.tasks[1].calls = {{"use", {{"x", {}, 0}}, {}}};
  std::vector<plan::Entry> entries(5);
  entries[0].task = entries[1].task = entries[3].task = "forward";
  entries[2].task = entries[4].task = "backward";
  entries[1].slot = entries[4].slot = 1;
  position.schedules["train"] = entries;
  CHECK(live_bytes_of_entries(plan, position, "train") ==
        std::vector<int64_t>{1010, 1020, 20, 1020, 10});
}

TEST_CASE("the live bytes of entries reach the peak in its entry") {
  const plan::Plan plan = load_plan("zero3.json");
  const plan::Position& position = plan.positions[0];
  const LivePeak peak = find_live_peak(plan, position, "train");
  const std::vector<int64_t> live = live_bytes_of_entries(plan, position, "train");
  REQUIRE(live.size() == position.schedules.at("train").size());
  CHECK(live[static_cast<size_t>(peak.entry)] == peak.bytes);
  CHECK(*std::max_element(live.begin(), live.end()) == peak.bytes);
  CHECK(*std::min_element(live.begin(), live.end()) > 0);
}

TEST_CASE("a schedule that a position does not have has no peak") {
  const plan::Plan plan = load_plan("zero3.json");
  CHECK(live_bytes_of_entries(plan, plan.positions[0], "evaluate").empty());
  CHECK(find_live_peak(plan, plan.positions[0], "evaluate").entry == -1);
}

namespace {

// A position that computes "make", which writes y, and "other", which writes t, beside transfers.
struct Transfers {
  plan::Plan plan;
  plan::Position position;

  Transfers() {
    plan.kernels.resize(2);
    plan.kernels[0].symbol = "make";
    plan.kernels[0].access = {"write"};
    plan.kernels[1].symbol = "other";
    plan.kernels[1].access = {"write"};
    add_buffer("y", 1000);
    add_buffer("t", 10);
    add_task("forward", "compute").calls = {{"make", {{"y", {}, 0}}, {}}};
    add_task("backward", "compute").calls = {{"other", {{"t", {}, 0}}, {}}};
    add_task("send", "send").inputs = {{"y", {}, 0}};
  }

  void add_buffer(const std::string& name, int64_t bytes) {
    plan::Buffer& buffer = position.buffers.emplace_back();
    buffer.name = name;
    buffer.bytes = bytes;
  }

  plan::Task& add_task(const std::string& name, const std::string& kind) {
    plan::Task& task = position.tasks.emplace_back();
    task.name = name;
    task.kind = kind;
    return task;
  }

  void run(const std::string& task, int64_t stream, const std::vector<int64_t>& waits) {
    plan::Entry& entry = position.schedules["train"].emplace_back();
    entry.task = task;
    entry.stream = stream;
    entry.waits = waits;
  }

  std::vector<int64_t> live() const { return live_bytes_of_entries(plan, position, "train"); }
};

}  // namespace

TEST_CASE("what is sent is live until somebody waits for it") {
  Transfers step;
  step.run("forward", 0, {});
  step.run("send", 1, {0});
  step.run("backward", 0, {});
  step.run("backward", 0, {1});
  CHECK(step.live() == std::vector<int64_t>{1000, 1000, 1010, 10});
}

TEST_CASE("what is sent is live although another transfer follows") {
  Transfers step;
  step.add_buffer("z", 100);
  step.add_task("forward_z", "compute").calls = {{"make", {{"z", {}, 0}}, {}}};
  step.add_task("send_z", "send").inputs = {{"z", {}, 0}};
  step.run("forward", 0, {});
  step.run("send", 1, {0});
  step.run("forward_z", 0, {});
  step.run("send_z", 1, {2});
  step.run("backward", 0, {});
  step.run("backward", 0, {1});
  CHECK(step.live() == std::vector<int64_t>{1000, 1000, 1100, 1100, 1110, 110});
}

TEST_CASE("a transfer that brings something ends those before it in its stream") {
  Transfers step;
  step.add_buffer("x", 100);
  step.add_task("receive", "receive").outputs = {{"x", {}, 0}};
  step.add_task("take", "compute").calls = {{"take", {{"x", {}, 0}}, {}}};
  step.plan.kernels.emplace_back().symbol = "take";
  step.plan.kernels.back().access = {"read"};
  step.run("forward", 0, {});
  step.run("send", 1, {0});
  step.run("backward", 0, {});
  step.run("receive", 1, {});
  step.run("backward", 0, {});
  step.run("take", 0, {3});
  CHECK(step.live() == std::vector<int64_t>{1000, 1000, 1010, 100, 110, 100});
}
