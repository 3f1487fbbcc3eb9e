// verify_plan accepts the hand-written plans of docs/plan-format and names the entry of each
// planted fault.
#include "plan/verify.h"

#include <algorithm>

#include "plan_files.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string texts(const std::vector<PlanFault>& faults) {
  std::string text;
  for (const PlanFault& fault : faults) text += to_string(fault) + "\n";
  return text;
}

std::vector<plan::Entry>& train(plan::Plan& plan, size_t position) {
  return plan.positions[position].schedules["train"];
}

// The index of the entry that runs `task` for `micro_batch`.
int64_t entry_of(plan::Plan& plan, size_t position, const std::string& task,
                 int64_t micro_batch = 0) {
  const std::vector<plan::Entry>& entries = train(plan, position);
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const plan::Entry& entry) {
    return entry.task == task && entry.micro_batch == micro_batch;
  });
  REQUIRE(found != entries.end());
  return found - entries.begin();
}

plan::Entry& entry(plan::Plan& plan, size_t position, const std::string& task,
                   int64_t micro_batch = 0) {
  return train(plan, position)[static_cast<size_t>(entry_of(plan, position, task, micro_batch))];
}

plan::Task& task(plan::Plan& plan, size_t position, const std::string& name) {
  for (plan::Task& task : plan.positions[position].tasks) {
    if (task.name == name) return task;
  }
  FAIL("no task " << name);
  return plan.positions[position].tasks[0];
}

plan::Buffer& buffer(plan::Plan& plan, size_t position, const std::string& name) {
  for (plan::Buffer& buffer : plan.positions[position].buffers) {
    if (buffer.name == name) return buffer;
  }
  FAIL("no buffer " << name);
  return plan.positions[position].buffers[0];
}

// Removes an entry and keeps waits pointing at the same entries.
void remove_entry(plan::Plan& plan, size_t position, int64_t index) {
  std::vector<plan::Entry>& entries = train(plan, position);
  entries.erase(entries.begin() + index);
  for (plan::Entry& entry : entries) {
    std::erase(entry.waits, index);
    for (int64_t& wait : entry.waits) wait -= wait > index ? 1 : 0;
  }
}

// The first fault is at that place of the train schedule.
void check_fault(const plan::Plan& plan, int64_t position, int64_t entry, const std::string& text) {
  const std::vector<PlanFault> faults = verify_plan(plan);
  INFO(texts(faults));
  REQUIRE(!faults.empty());
  CHECK(faults[0].position == position);
  CHECK(faults[0].entry == entry);
  CHECK(faults[0].schedule == "train");
  CHECK_THAT(faults[0].text, ContainsSubstring(text));
}

// A fault outside of the schedules.
void check_static_fault(const plan::Plan& plan, const std::string& text) {
  const std::vector<PlanFault> faults = verify_plan(plan);
  INFO(texts(faults));
  REQUIRE(!faults.empty());
  CHECK_THAT(texts(faults), ContainsSubstring(text));
}

}  // namespace

TEST_CASE("the hand-written plans are sound") {
  for (const char* name : {"zb-v.json", "zero3.json", "tp2.json"}) {
    INFO(name);
    CHECK(texts(verify_plan(load_plan(name))) == "");
  }
}

TEST_CASE("a dropped receive is found at the send that it leaves alone") {
  plan::Plan plan = load_plan("zb-v.json");
  remove_entry(plan, 1, entry_of(plan, 1, "receive_h1", 2));
  check_fault(plan, 0, entry_of(plan, 0, "send_h1", 2), "another micro-batch");
}

TEST_CASE("a dropped last send is found at the receive that waits for it") {
  plan::Plan plan = load_plan("zb-v.json");
  remove_entry(plan, 1, entry_of(plan, 1, "send_d1", 5));
  check_fault(plan, 0, entry_of(plan, 0, "receive_d1", 5), "no send meets");
}

TEST_CASE("two swapped collectives are found") {
  plan::Plan plan = load_plan("zb-v.json");
  const int64_t first = entry_of(plan, 1, "reduce_square");
  std::swap(train(plan, 1)[static_cast<size_t>(first)].task,
            train(plan, 1)[static_cast<size_t>(first) + 1].task);
  check_fault(plan, 1, first, "\"max\" meets \"sum\"");
}

TEST_CASE("a collective without one member is found") {
  plan::Plan plan = load_plan("zb-v.json");
  const int64_t last = entry_of(plan, 1, "reduce_flag");
  remove_entry(plan, 1, last);
  check_fault(plan, 0, entry_of(plan, 0, "reduce_flag"), "not every position");
}

TEST_CASE("a shifted offset is found where it leaves the buffer") {
  plan::Plan plan = load_plan("zero3.json");
  task(plan, 0, "reduce_w1").outputs[0].offset.base = 64;
  const std::vector<PlanFault> faults = verify_plan(plan);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].task == "reduce_w1");
  CHECK(faults[0].buffer == "gradients");
  CHECK(faults[0].text == "bytes 576 to 1088 of an instance of 1024 (dp 1, tp 0)");
}

TEST_CASE("an offset that lost its rank is found where the other half is read") {
  plan::Plan plan = load_plan("zero3.json");
  task(plan, 0, "backward_2").calls.back().arguments.back() = {"gradients", {0, 256, 0}, 512};
  check_fault(plan, 0, entry_of(plan, 0, "reduce_w2"), "nothing has written all of it");
}

TEST_CASE("a missing wait for data is found at the reader") {
  plan::Plan plan = load_plan("zb-v.json");
  entry(plan, 1, "forward_1", 0).waits.clear();
  check_fault(plan, 1, entry_of(plan, 1, "forward_1", 0), "without waiting for it");
}

TEST_CASE("a missing wait before overwriting is found at the writer") {
  plan::Plan plan = load_plan("zero3.json");
  entry(plan, 0, "gather_w2").waits.clear();
  check_fault(plan, 0, entry_of(plan, 0, "gather_w2"), "(forward_0) reads, without waiting");
}

TEST_CASE("a wrong count is found at the send") {
  plan::Plan plan = load_plan("zb-v.json");
  task(plan, 1, "receive_d3").outputs[0].bytes = 256;
  check_fault(plan, 0, entry_of(plan, 0, "send_d3", 0), "512 bytes meet 256");
}

TEST_CASE("GPUs transfer part by part, CPUs a message") {
  plan::Plan plan = load_plan("zb-v.json");
  task(plan, 1, "receive_d3").outputs = {{"d3", {}, 256}, {"d3", {256, 0, 0}, 256}};
  CHECK(texts(verify_plan(plan)).empty());
  plan.target = "sm_90a";
  check_fault(plan, 0, entry_of(plan, 0, "send_d3", 0), "parts of other sizes");
}

TEST_CASE("a dtype mismatch is found at the send") {
  plan::Plan plan = load_plan("zb-v.json");
  task(plan, 1, "receive_d3").dtype = "i32";
  buffer(plan, 1, "d3").dtype = "i32";
  check_fault(plan, 0, entry_of(plan, 0, "send_d3", 0), "f32 meets i32");
}

TEST_CASE("a slot that is used again too early is found") {
  plan::Plan plan = load_plan("zb-v.json");
  for (const std::string name : {"forward_0", "send_h1", "receive_d1", "backward_weight_0"}) {
    entry(plan, 0, name, 1).slot = entry(plan, 0, name, 0).slot;
  }
  check_fault(plan, 0, entry_of(plan, 0, "forward_0", 1), "send_h1) reads, without waiting");
}

TEST_CASE("data of another micro-batch in a slot is found at its reader") {
  plan::Plan plan = load_plan("tp2.json");
  std::vector<plan::Entry>& entries = train(plan, 0);
  // Both forwards before both backwards, with one slot.
  plan::Entry first = entries[6];
  for (plan::Entry& entry : entries) entry.stream = 0;
  first.stream = 0;
  entries.insert(entries.begin() + 3, first);
  for (plan::Entry& entry : entries) entry.waits.clear();
  check_fault(plan, 0, 4, "micro-batch 0 reads what entry 3 (forward_pair) wrote");
}

TEST_CASE("a slot that does not exist is found") {
  plan::Plan plan = load_plan("zb-v.json");
  entry(plan, 0, "forward_0", 1).slot = 4;
  check_fault(plan, 0, entry_of(plan, 0, "forward_0", 1), "slot 4 of 4");
}

TEST_CASE("an unknown buffer is found in its task") {
  plan::Plan plan = load_plan("tp2.json");
  task(plan, 0, "forward_pair").calls[1].arguments[1].buffer = "upp";
  check_static_fault(plan, "position 0, task forward_pair, buffer upp: unknown buffer");
}

TEST_CASE("an unknown kernel, task and communicator are found") {
  plan::Plan plan = load_plan("tp2.json");
  task(plan, 0, "update").calls[0].kernel = "adamw";
  task(plan, 0, "reduce_y").communicator = "tp";
  const std::string found = texts(verify_plan(plan));
  CHECK_THAT(found, ContainsSubstring("task update: unknown kernel \"adamw\""));
  CHECK_THAT(found, ContainsSubstring("task reduce_y: unknown communicator \"tp\""));
  plan = load_plan("tp2.json");
  train(plan, 0)[3].task = "backward";
  check_fault(plan, 0, 3, "unknown task");
}

TEST_CASE("a wrong peer is found in its task") {
  plan::Plan plan = load_plan("zb-v.json");
  task(plan, 1, "send_d1").peer = 1;
  check_static_fault(plan,
                     "position 1, task send_d1: the peer is another position below 2, found 1");
}

TEST_CASE("cyclic waits are found at the one that looks ahead") {
  plan::Plan plan = load_plan("zb-v.json");
  train(plan, 0)[3].waits = {5};
  train(plan, 0)[5].waits = {3};
  check_fault(plan, 0, 3, "waits for entry 5");
}

TEST_CASE("opposite orders on two communicators are a deadlock") {
  plan::Plan plan = load_plan("zb-v.json");
  plan::Task& reduce = task(plan, 0, "reduce_flag");
  reduce.communicator = "forward_up";
  task(plan, 1, "reduce_flag").communicator = "forward_up";
  CHECK(texts(verify_plan(plan)) == "");
  const auto first = static_cast<size_t>(entry_of(plan, 1, "reduce_square"));
  std::swap(train(plan, 1)[first].task, train(plan, 1)[first + 1].task);
  check_fault(plan, 0, entry_of(plan, 0, "reduce_square"), "deadlock");
}

TEST_CASE("sends that cross are a deadlock unless they are grouped with the receives") {
  plan::Plan plan = load_plan("zb-v.json");
  for (size_t p = 0; p < 2; ++p) {
    train(plan, p).clear();
    plan.positions[p].schedules["other"].clear();
  }
  plan.results.clear();
  const auto issue = [&](size_t p, const std::string& name, int64_t group) {
    plan::Entry entry;
    entry.task = name;
    entry.group = group;
    train(plan, p).push_back(entry);
  };
  buffer(plan, 0, "h1").scope = buffer(plan, 1, "h3").scope = "persistent";
  buffer(plan, 0, "h1").count = buffer(plan, 1, "h3").count = 1;
  for (const int64_t group : {-1, 0}) {
    train(plan, 0).clear();
    train(plan, 1).clear();
    issue(0, "send_h1", group);
    issue(0, "receive_h3", group);
    issue(1, "send_h3", group);
    issue(1, "receive_h1", group);
    if (group < 0) {
      check_fault(plan, 0, 0, "deadlock");
    } else {
      CHECK(texts(verify_plan(plan)) == "");
    }
  }
}

TEST_CASE("overlapping offsets are found at the read of what was overwritten") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "dh").offset = buffer(plan, 0, "s").offset;
  check_fault(plan, 0, entry_of(plan, 0, "backward_pair", 0), "hold buffer dh");
}

TEST_CASE("overlapping persistent buffers are found") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "down").offset = buffer(plan, 0, "up").offset;
  check_static_fault(plan, "buffer down: shares bytes with up");
}

TEST_CASE("a persistent buffer that something overwrites is found") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "y").offset = buffer(plan, 0, "up").offset;
  check_fault(plan, 0, 0, "overwrites the persistent buffer up");
}

TEST_CASE("streams that share bytes without order are found") {
  plan::Plan plan = load_plan("zero3.json");
  buffer(plan, 0, "loss.mean").offset = buffer(plan, 0, "d3").offset;
  check_fault(plan, 0, entry_of(plan, 0, "backward_2"), "(reduce_loss) writes, without waiting");
}

TEST_CASE("a read of what nobody wrote is found") {
  plan::Plan plan = load_plan("tp2.json");
  task(plan, 0, "forward_pair").calls.erase(task(plan, 0, "forward_pair").calls.begin());
  check_fault(plan, 0, 0, "nothing has written all of it");
}

TEST_CASE("a task's buffer that a later task reads is found") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "ds").scope = "task";
  check_fault(plan, 0, entry_of(plan, 0, "reduce_ds", 0), "ends with its task");
}

TEST_CASE("gathered data that is overwritten unread is found") {
  plan::Plan plan = load_plan("zero3.json");
  entry(plan, 0, "gather_w1").ring = 0;
  check_fault(plan, 0, entry_of(plan, 0, "gather_w1"), "before anybody read it");
}

TEST_CASE("a result that is overwritten before the step ends is found") {
  plan::Plan plan = load_plan("zero3.json");
  plan.results[0].buffer = "loss";
  buffer(plan, 0, "d1").offset = buffer(plan, 0, "loss").offset;
  plan.positions[0].arena_bytes += 512;
  buffer(plan, 0, "loss.mean").offset = plan.positions[0].arena_bytes - 4;
  entry(plan, 0, "backward_2").waits.push_back(entry_of(plan, 0, "reduce_loss"));
  check_static_fault(plan, "buffer loss: a result, but not whole at the end of the step");
}

TEST_CASE("the collective's sizes follow from the axis") {
  plan::Plan plan = load_plan("zero3.json");
  task(plan, 0, "gather_w0").inputs[0].bytes = 256;
  check_static_fault(plan,
                     "task gather_w0, buffer weights: all_gather over 2 ranks reads 256 bytes "
                     "and writes 1024");
}

TEST_CASE("arguments are counted") {
  plan::Plan plan = load_plan("tp2.json");
  task(plan, 0, "update").calls[0].arguments.pop_back();
  check_static_fault(plan, "kernel \"sgd_half\" takes 3 arguments, found 2");
}

TEST_CASE("sizes of buffers are checked") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "x").stride = 64;
  buffer(plan, 0, "s").bytes = 500;
  buffer(plan, 0, "h").offset = plan.positions[0].arena_bytes - 64;
  buffer(plan, 0, "y").dtype = "float";
  buffer(plan, 0, "dy").shape = {-8, 16};
  const std::string found = texts(verify_plan(plan));
  CHECK_THAT(found,
             ContainsSubstring("buffer x: instances of 512 bytes overlap at a stride of 64"));
  CHECK_THAT(found,
             ContainsSubstring("buffer s: the shape needs 128 elements of f32, found 500 bytes"));
  CHECK_THAT(found, ContainsSubstring("buffer h: bytes"));
  CHECK_THAT(found, ContainsSubstring("buffer y: unknown dtype \"float\""));
  CHECK_THAT(found, ContainsSubstring("buffer dy: the shape has a negative or too large size"));
}

TEST_CASE("names are unique") {
  plan::Plan plan = load_plan("tp2.json");
  buffer(plan, 0, "dy").name = "dh";
  task(plan, 0, "reduce_y").name = "update";
  const std::string found = texts(verify_plan(plan));
  CHECK_THAT(found, ContainsSubstring("buffer dh: the name occurs twice"));
  CHECK_THAT(found, ContainsSubstring("task update: the name occurs twice"));
}

TEST_CASE("a stage has one owner") {
  plan::Plan plan = load_plan("zb-v.json");
  plan.positions[1].stages = {1, 2, 3};
  check_static_fault(plan, "position 1: stage 3 has two owners");
}

TEST_CASE("feeds, results and states name buffers of the right kind") {
  plan::Plan plan = load_plan("zb-v.json");
  plan.feeds[0].shape = {8, 17};
  plan.results[0].buffer = "lost";
  plan.states[0].position = 7;
  const std::string found = texts(verify_plan(plan));
  CHECK_THAT(found, ContainsSubstring("buffer x: the feed and the buffer have different types"));
  CHECK_THAT(found, ContainsSubstring("buffer lost: unknown buffer of a result"));
  CHECK_THAT(found, ContainsSubstring("is at position 7, which does not exist"));
}

TEST_CASE("groups adjoin and hold communications of one stream") {
  plan::Plan plan = load_plan("zb-v.json");
  entry(plan, 0, "send_h1", 0).group = 1;
  entry(plan, 0, "send_h1", 2).group = 1;
  check_fault(plan, 0, entry_of(plan, 0, "send_h1", 2), "not adjacent");
  plan = load_plan("zb-v.json");
  entry(plan, 0, "forward_0", 0).group = 1;
  check_fault(plan, 0, entry_of(plan, 0, "forward_0", 0), "communications only");
}

TEST_CASE("another version of the format is refused") {
  plan::Plan plan = load_plan("tp2.json");
  plan.version = 2;
  check_static_fault(plan, "version is 1, found 2");
}
