#include "cuda/launches.h"

#include <string>
#include <vector>

#include "runtime/child.h"
#include "runtime/regression_program.h"
#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

// A task of so many calls.
plan::Task task(const std::string& name, size_t calls) {
  plan::Call call;
  call.kernel = "k";
  call.arguments = {{"slot", {8, 0, 0}, 4}};
  return compute_task(name, std::vector<plan::Call>(calls, call));
}

plan::Plan plan_of(std::vector<plan::Task> tasks, std::vector<plan::Entry> entries) {
  plan::Plan plan;
  plan.kernels = {kernel_of("k", 3)};
  plan.micro_batches = 4;
  plan::Position position;
  add_buffer(position, "slot", "slot", {16}, 64, 2);
  position.tasks = std::move(tasks);
  position.schedules["train"] = std::move(entries);
  plan.positions = {position};
  return plan;
}

std::vector<Launch> launches_of(const plan::Plan& plan, const Coordinates& coordinates = {}) {
  const Arena arena(plan.positions[0].arena_bytes);
  const PlanMemory memory(plan.positions[0], arena);
  return list_launches(plan, coordinates, "train", memory);
}

// "task<earlier,launches" of each launch.
std::string edges(const plan::Plan& plan) {
  std::string text;
  for (const Launch& launch : launches_of(plan)) {
    text += (text.empty() ? "" : " ") + *launch.task;
    for (size_t i = 0; i < launch.after.size(); ++i) {
      text += (i == 0 ? "<" : ",") + std::to_string(launch.after[i]);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("calls of a task and entries of a stream follow each other") {
  CHECK(edges(plan_of({task("a", 2), task("b", 1)}, {entry_of("a"), entry_of("b")})) ==
        "a a<0 b<1");
}

TEST_CASE("streams are apart but for waits") {
  CHECK(edges(plan_of({task("a", 1), task("b", 1), task("c", 1)},
                      {entry_of("a"), entry_of("b", 0, 1), entry_of("c", 0, 0, {1})})) ==
        "a b c<0,1");
}

TEST_CASE("an entry without calls passes on what it waits for") {
  CHECK(edges(plan_of({task("a", 1), task("none", 0), task("b", 1)},
                      {entry_of("a"), entry_of("none", 0, 1, {0}), entry_of("b", 0, 1)})) ==
        "a b<0");
}

TEST_CASE("an entry that both its stream and a wait order has one edge") {
  CHECK(edges(plan_of({task("a", 1)}, {entry_of("a"), entry_of("a", 1, 0, {0})})) == "a a<0");
}

TEST_CASE("arguments and micro-batches are those of the entry and the rank") {
  plan::Plan plan = plan_of({task("a", 1)}, {entry_of("a", 3)});
  plan.positions[0].schedules["train"][0].slot = 1;
  const Arena arena(plan.positions[0].arena_bytes);
  const PlanMemory memory(plan.positions[0], arena);
  const std::vector<Launch> launches = list_launches(plan, {0, 2, 0}, "train", memory);
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].arguments[0].data - arena.data() == 64 + 8);
  CHECK(launches[0].arguments[0].bytes == 4);
  CHECK(launches[0].micro_batch == 3);
  CHECK(launches[0].global_micro_batch == 2 * 4 + 3);
  CHECK(launches[0].kernel->blocks == 3);
  CHECK(list_launches(plan, {}, "evaluate", memory).empty());
}

TEST_CASE("communications follow each other, and groups are one launch") {
  plan::Task send = task("send", 0);
  send.kind = "send";
  send.communicator = "down";
  plan::Task receive = send;
  receive.name = receive.kind = "receive";
  receive.communicator = "up";
  std::vector<plan::Entry> entries = {
      entry_of("a"),          entry_of("send", 0, 1, {0}), entry_of("receive", 0, 2),
      entry_of("send", 1, 1), entry_of("receive", 1, 1),   entry_of("a", 1, 0, {4})};
  entries[3].group = entries[4].group = 0;
  const plan::Plan plan = plan_of({task("a", 1), send, receive}, entries);
  CHECK(edges(plan) == "a send<0 receive<1 send<1,2 a<0,3");
  const std::vector<Launch> launches = launches_of(plan);
  REQUIRE(launches[3].communications.size() == 2);
  CHECK(*launches[3].communications[0].communicator == "down");
  CHECK(launches[3].communications[1].request.kind == CommunicationKind::receive);
  CHECK(launches[3].stream == 1);
  CHECK(launches[3].micro_batch == 1);
}

}  // namespace sgtc::runtime::cuda
