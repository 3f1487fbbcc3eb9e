#include "runtime/executor.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "runtime/child.h"
#include "runtime/regression_program.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// Records the text that argument 0 points at, the number of blocks and the micro-batch.
std::vector<std::string>* record = nullptr;

void note_call(void* const* arguments, int64_t begin, int64_t end, int64_t micro_batch) {
  record->push_back(std::string(static_cast<const char*>(arguments[0])) + ":" +
                    std::to_string(end - begin) + ":" + std::to_string(micro_batch));
}

void count_blocks(void* const* arguments, int64_t begin, int64_t end, int64_t micro_batch) {
  int64_t* counts = static_cast<int64_t*>(arguments[0]);
  for (int64_t i = begin; i < end; ++i) counts[i] += 1 + micro_batch;
}

constexpr int64_t kPart = 32;  // blocks of each of two threads

struct LastBlocks {
  std::atomic<int64_t> runs = 0;
  int64_t seen = 0;  // by block 0
};

// Block 0 goes on when the last blocks of its thread's part have been run by another thread.
void wait_for_others(void* const* arguments, int64_t begin, int64_t end, int64_t blocks) {
  auto& [runs, seen] = *static_cast<LastBlocks*>(arguments[0]);
  for (int64_t i = begin; i < end; ++i) {
    if (i == 0) {
      const time_t latest = time(nullptr) + 20;
      while (runs < blocks && time(nullptr) < latest) usleep(100);
      seen = runs;
    } else if (i >= kPart - blocks && i < kPart) {
      ++runs;
    }
  }
}

const SgtcKernel kKernels[] = {{"note", note_call}, {"count", count_blocks}};

Program program_with_kernels() {
  Program program;
  program.kernels = kKernels;
  program.kernel_count = std::size(kKernels);
  return program;
}

plan::Task task(const std::string& name, const plan::Argument& argument) {
  plan::Call call;
  call.kernel = "note";
  call.arguments = {argument};
  return compute_task(name, {call});
}

// One buffer of each scope with 4 instances of 8 bytes, each holding its name and instance.
plan::Plan noting_plan() {
  plan::Plan plan;
  plan.kernels = {kernel_of("note", 1)};
  plan::Position position;
  for (const char* scope : {"persistent", "step", "micro_batch", "slot", "ring", "task"}) {
    position.buffers.push_back({scope, scope, "u8", {8}, 8, position.arena_bytes, 8, 4});
    position.tasks.push_back(task(scope, {scope, {}, 0}));
    position.arena_bytes += 32;
  }
  plan.positions = {position};
  return plan;
}

std::vector<std::string> run(const plan::Plan& plan) {
  const plan::Position& position = plan.positions[0];
  const Arena arena(position.arena_bytes);
  for (const plan::Buffer& buffer : position.buffers) {
    for (int64_t i = 0; i < buffer.count; ++i) {
      const std::string tag = buffer.name.substr(0, 5) + std::to_string(i);
      std::memcpy(arena.data() + buffer.offset + i * buffer.stride, tag.c_str(), tag.size() + 1);
    }
  }
  const PlanMemory memory(position, arena);
  const Program program = program_with_kernels();
  const PreparedSchedule schedule = prepare_schedule(plan, {}, "train", program, memory);
  std::vector<std::string> calls;
  record = &calls;
  ThreadPool threads(1);
  Executor(threads, nullptr).run(schedule, 1, nullptr);
  return calls;
}

}  // namespace

TEST_CASE("the scope of a buffer selects the instance") {
  plan::Plan plan = noting_plan();
  for (const plan::Task& task : plan.positions[0].tasks) {
    plan::Entry entry = entry_of(task.name, 1);
    entry.slot = 2;
    entry.ring = 3;
    plan.positions[0].schedules["train"].push_back(entry);
  }
  CHECK(run(plan) == std::vector<std::string>{"persi0:1:1", "step0:1:1", "micro1:1:1", "slot2:1:1",
                                              "ring3:1:1", "task0:1:1"});
}

TEST_CASE("an argument may be a part of a buffer") {
  plan::Plan plan = noting_plan();
  plan.positions[0].tasks = {task("part", {"step", {2, 0, 0}, 4})};
  plan.positions[0].schedules["train"] = {entry_of("part")};
  CHECK(run(plan) == std::vector<std::string>{"ep0:1:0"});
}

TEST_CASE("entries run after those that they wait for, also later ones of other streams") {
  plan::Plan plan = noting_plan();
  std::vector<plan::Entry>& entries = plan.positions[0].schedules["train"];
  entries = {entry_of("step", 0, 1, {2}), entry_of("slot", 0, 1), entry_of("ring"),
             entry_of("task", 0, 0, {1})};
  CHECK(run(plan) == std::vector<std::string>{"ring0:1:0", "step0:1:0", "slot0:1:0", "task0:1:0"});
}

TEST_CASE("plans that contradict themselves are refused by name") {
  const auto refusal = [](const std::function<void(plan::Plan&)>& damage) {
    plan::Plan plan = noting_plan();
    plan.positions[0].schedules["train"] = {entry_of("step"), entry_of("slot")};
    damage(plan);
    const ChildResult result = run_child([&] { return static_cast<int>(run(plan).size()); });
    CHECK(result.code == 1);
    return result.errors;
  };
  const auto contains = [&](const std::function<void(plan::Plan&)>& damage,
                            const std::string& text) {
    const std::string message = refusal(damage);
    INFO(message);
    return message.find(text) != std::string::npos;
  };
  CHECK(contains([](auto& p) { p.positions[0].schedules["train"][0].task = "no"; },
                 "there is no task no"));
  CHECK(contains([](auto& p) { p.kernels.clear(); }, "there is no kernel note"));
  CHECK(contains([](auto& p) { p.positions[0].buffers[0].offset = 1000; },
                 "buffer persistent lies outside the arena"));
  CHECK(contains([](auto& p) { p.positions[0].schedules["train"][1].slot = 4; },
                 "buffer slot has no instance 4"));
  CHECK(contains([](auto& p) { p.positions[0].schedules["train"][0].waits = {7}; },
                 "a wait is for no entry"));
  CHECK(contains([](auto& p) { p.positions[0].schedules["train"][0].waits = {1}; },
                 "entries of a schedule wait for each other"));
  CHECK(contains([](auto& p) { p.positions[0].tasks[1].kind = "send"; },
                 "task step communicates over \"\", which this rank is not a member of"));
}

TEST_CASE("threads share the blocks of a call, each exactly once") {
  for (int64_t threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (int64_t blocks : {0, 1, 2, 5, 64, 1001}) {
      std::vector<int64_t> counts(1001);
      void* arguments[] = {counts.data()};
      for (int repeat = 0; repeat < 20; ++repeat) pool.run(count_blocks, arguments, blocks, 2);
      for (int64_t i = 0; i < 1001; ++i) {
        REQUIRE(counts[static_cast<size_t>(i)] == (i < blocks ? 60 : 0));
      }
    }
  }
}

TEST_CASE("a thread that is done with its part takes from that of a slow one") {
  ThreadPool pool(2);
  LastBlocks last;
  void* arguments[] = {&last};
  pool.run(wait_for_others, arguments, 2 * kPart, kPart / 4);
  CHECK(last.seen == kPart / 4);
}

TEST_CASE("threads that slept wake up for the next call") {
  ThreadPool pool(3);
  std::vector<int64_t> counts(6);
  void* arguments[] = {counts.data()};
  for (int repeat = 0; repeat < 3; ++repeat) {
    pool.run(count_blocks, arguments, 6, 0);
    usleep(20000);
  }
  CHECK(counts == std::vector<int64_t>(6, 3));
}

}  // namespace sgtc::runtime
