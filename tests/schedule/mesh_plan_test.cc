// Plans of pipelines and replicas, checked by verify_plan.
#include <algorithm>
#include <map>

#include "mesh_plans.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

// "F0 F1 B0 B1 U": what computes, in order; only the first task of a pass is shown.
std::string passes_text(const plan::Plan& plan, size_t position) {
  static const std::map<std::string, std::string> kLetters = {
      {"setup", "S"}, {"prologue", "P"}, {"forward", "F"}, {"backward", "B"}, {"update", "U"}};
  std::string text;
  for (const plan::Entry& entry : plan.positions[position].schedules.at("train")) {
    const auto letter = kLetters.find(entry.task);
    if (letter == kLetters.end()) continue;
    text += (text.empty() ? "" : " ") + letter->second + std::to_string(entry.micro_batch);
  }
  return text;
}

int64_t index_of(const plan::Position& position, const std::string& task, int64_t micro_batch) {
  const std::vector<plan::Entry>& entries = position.schedules.at("train");
  for (size_t e = 0; e < entries.size(); ++e) {
    if (entries[e].task == task && entries[e].micro_batch == micro_batch) {
      return static_cast<int64_t>(e);
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("plans of every mesh, schedule and number of micro-batches are sound") {
  for (const auto& [pp, dp] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 1}, {4, 1}, {1, 2}, {1, 4}, {2, 2}, {3, 2}, {2, 4}, {6, 1}}) {
    for (const int64_t micro_batches : {1, 2, 3, 7}) {
      for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
        INFO(pp << "x" << dp << ", " << micro_batches << " micro-batches");
        const plan::Plan plan = plan_on({6, {pp, dp, 1}, micro_batches, schedule});
        CHECK(fault_texts(plan) == "");
        CHECK(plan.positions.size() == static_cast<size_t>(pp));
      }
    }
  }
}

// The gradient of a sum is known without the stage that computes it, so nothing that arrives tells
// the backward pass that what it overwrites has been sent.
TEST_CASE("what was sent is overwritten only when it is gone") {
  const std::string text = R"(graph "early" rows 4 micro_batches 3
feed %x: f32[4,8]
state parameter %w: f32[8,8] = normal(0.0, 0.1, seed 1)
constant %count: f32[] = [12]
%m = matmul(%x, %w)
%s = mul(%m, %m)
%y = exp(%s)
%total = reduce_sum(%y) {axes=[0,1]}
%loss = div(%total, %count)
output "loss" %loss
)";
  for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
    const plan::Plan plan = plan_on(text, {0, {2, 1, 1}, 3, schedule});
    CHECK(fault_texts(plan) == "");
  }
}

TEST_CASE("a view of an input is an output of the stage that takes it") {
  const plan::Plan plan = plan_on(R"(graph "view" rows 4 micro_batches 2
feed %x: f32[4,8]
feed %z: f32[4,8]
state parameter %w: f32[8,8] = normal(0.0, 0.1, seed 1)
constant %count: f32[] = [8]
%m = matmul(%x, %w)
%s = mul(%m, %m)
%y = exp(%s)
%total = reduce_sum(%y) {axes=[0,1]}
%loss = div(%total, %count)
%seen = reshape(%x) {shape=[8,4]}
%unread = reshape(%z) {shape=[8,4]}
output "loss" %loss
output "seen" %seen
output "unread" %unread
)",
                                  {0, {2, 1, 1}, 2, PipelineSchedule::kGPipe});
  CHECK(fault_texts(plan) == "");
  std::map<std::string, std::string> buffers;
  for (const plan::Result& result : plan.results) {
    buffers[result.name] += result.buffer + " on " + std::to_string(result.position) + ";";
  }
  CHECK(buffers.at("seen") == "x on 1;");
  CHECK(buffers.at("unread") == "z on 1;");
}

TEST_CASE("what a stage sets up is there for all its micro-batches, and computed once") {
  const std::string text = R"(graph "setup" rows 4 micro_batches 3
feed %x: f32[4,8]
state parameter %v: f32[8,8] = normal(0.0, 0.1, seed 1)
state parameter %w: f32[8,8] = normal(0.0, 0.1, seed 2)
constant %count: f32[] = [12]
%set = exp(%w) @setup
%m = matmul(%x, %v)
%s = mul(%m, %m)
%n = matmul(%s, %set)
%total = reduce_sum(%n) {axes=[0,1]}
%loss = div(%total, %count)
output "loss" %loss
)";
  for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
    const plan::Plan plan = plan_on(text, {0, {2, 1, 1}, 3, schedule});
    CHECK(fault_texts(plan) == "");
    // Both stages read it here, so each sets it up.
    for (size_t p = 0; p < 2; ++p) {
      CHECK_THAT(passes_text(plan, p), StartsWith("S0 F0 ") && !ContainsSubstring("S1"));
    }
  }
}

TEST_CASE("1F1B alternates as soon as it can, GPipe collects") {
  const plan::Plan one = plan_on({4, {2, 1, 1}, 3, PipelineSchedule::k1F1B});
  CHECK(passes_text(one, 0) == "F0 F1 B0 F2 B1 B2 U0");
  CHECK(passes_text(one, 1) == "P0 P1 P2 F0 B0 F1 B1 F2 B2 U0");
  const plan::Plan gpipe = plan_on({4, {2, 1, 1}, 3, PipelineSchedule::kGPipe});
  CHECK(passes_text(gpipe, 0) == "F0 F1 F2 B0 B1 B2 U0");
}

TEST_CASE("fewer micro-batches than stages leave no pass out") {
  const plan::Plan plan = plan_on({4, {4, 1, 1}, 2});
  for (size_t p = 0; p < 3; ++p)
    CHECK_THAT(passes_text(plan, p), ContainsSubstring("F0 F1 B0 B1 U0"));
}

TEST_CASE("the first bucket is reduced while the backward pass goes on") {
  const plan::Plan plan = plan_on({12, {1, 2, 1}, 2});
  const plan::Position& position = plan.positions[0];
  const int64_t first = index_of(position, "reduce_bucket_0", 0);
  REQUIRE(first >= 0);
  int64_t last_backward = -1;
  const std::vector<plan::Entry>& entries = position.schedules.at("train");
  for (size_t e = 0; e < entries.size(); ++e) {
    if (entries[e].task.rfind("backward", 0) == 0) last_backward = static_cast<int64_t>(e);
  }
  CHECK(first < last_backward);
  CHECK(entries[static_cast<size_t>(first)].stream != 0);
  CHECK(entries[static_cast<size_t>(last_backward)].waits.empty());
}

TEST_CASE("denominators are reduced before the first forward pass reads them") {
  const plan::Plan plan = plan_on({2, {1, 2, 1}, 2});
  const plan::Position& position = plan.positions[0];
  const int64_t reduce = index_of(position, "reduce_prologue", 0);
  const int64_t forward = index_of(position, "forward", 0);
  REQUIRE(reduce > index_of(position, "prologue", 1));
  REQUIRE(forward > reduce);
  CHECK(position.schedules.at("train")[static_cast<size_t>(forward)].waits ==
        std::vector<int64_t>{reduce});
}

TEST_CASE("a skip connection crosses stages once, straight to its reader") {
  const plan::Plan plan = plan_on({6, {3, 1, 1}, 2});
  int64_t to_last = 0;
  for (const plan::Task& task : plan.positions[0].tasks) {
    if (task.kind == "send" && task.communicator == "pp.forward" && task.peer == 2) {
      to_last += static_cast<int64_t>(task.inputs.size());
    }
  }
  CHECK(to_last == 1);
}

TEST_CASE("a tied parameter is held and updated at both ends") {
  const plan::Plan plan = plan_on({6, {3, 1, 1}, 2});
  std::vector<int64_t> holders;
  for (const plan::State& state : plan.states) {
    if (state.name == "wte") holders.push_back(state.position);
  }
  CHECK(holders == std::vector<int64_t>{0, 2});
  // Each end sends its use of the gradient to the other.
  for (const auto& [position, peer] : std::vector<std::pair<size_t, int64_t>>{{0, 2}, {2, 0}}) {
    int64_t bytes = 0;
    for (const plan::Task& task : plan.positions[position].tasks) {
      if (task.kind != "send" || task.communicator != "pp.update" || task.peer != peer) continue;
      for (const plan::Argument& input : task.inputs) {
        for (const plan::Buffer& buffer : plan.positions[position].buffers) {
          if (buffer.name == input.buffer) bytes = std::max(bytes, buffer.bytes);
        }
      }
    }
    CHECK(bytes == 16 * 32 * 4);
  }
}

TEST_CASE("loss, norm and finiteness are known on every position") {
  const plan::Plan plan = plan_on({4, {4, 2, 1}, 2});
  std::map<std::string, int64_t> found;
  for (const plan::Result& result : plan.results) ++found[result.name];
  CHECK(found == std::map<std::string, int64_t>{{"finite", 4}, {"grad_norm", 4}, {"loss", 4}});
}

TEST_CASE("feeds are where they are read") {
  const plan::Plan plan = plan_on({4, {2, 1, 1}, 2});
  std::map<std::string, std::vector<int64_t>> positions;
  for (const plan::Feed& feed : plan.feeds) positions[feed.name].push_back(feed.position);
  CHECK(positions["x"].front() == 0);
  CHECK(positions["labels"] == std::vector<int64_t>{1});
  CHECK(positions["weights"] == std::vector<int64_t>{1});
}

TEST_CASE("an early stage keeps as many micro-batches as are under way") {
  const plan::Plan plan = plan_on({4, {4, 1, 1}, 8});
  for (size_t p = 0; p < 4; ++p) {
    int64_t slots = 0;
    for (const plan::Buffer& buffer : plan.positions[p].buffers) {
      if (buffer.scope == "slot") slots = std::max(slots, buffer.count);
    }
    CHECK(slots == static_cast<int64_t>(4 - p));
  }
}

TEST_CASE("every mesh has the same model fingerprint") {
  const std::string one = plan_on({4, {1, 1, 1}, 4}).model_fingerprint;
  CHECK(plan_on({4, {2, 1, 1}, 4}).model_fingerprint == one);
  CHECK(plan_on({4, {2, 2, 1}, 2}).model_fingerprint == one);
}

TEST_CASE("a bubble is predicted") {
  CHECK(plan_on({4, {1, 1, 1}, 4}).prediction.bubble == 0);
  const double few = plan_on({8, {4, 1, 1}, 4}).prediction.bubble;
  const double many = plan_on({8, {4, 1, 1}, 32}).prediction.bubble;
  CHECK(few > many);
  CHECK(many > 0);
}

TEST_CASE("more stages than groups are refused") {
  CHECK_THROWS_WITH(plan_on({1, {64, 1, 1}, 1}),
                    ContainsSubstring("64 pipeline stages, but the model has only"));
}

TEST_CASE("gradients that are reduced as one lie side by side and are one message") {
  const plan::Plan plan = plan_on({4, {1, 2, 1}});
  const plan::Position& position = plan.positions[0];
  std::map<std::string, int64_t> bytes;
  for (const plan::Buffer& buffer : position.buffers) bytes[buffer.name] = buffer.bytes;
  int64_t joined = 0;
  for (const plan::Task& task : position.tasks) {
    if (bytes.count(task.name) == 0) continue;
    ++joined;
    CHECK(task.kind == "all_reduce");
    REQUIRE(task.inputs.size() == 1);
    REQUIRE(task.outputs.size() == 1);
    for (const plan::Argument& part : {task.inputs[0], task.outputs[0]}) {
      CHECK(part.buffer == task.name);
      CHECK(part.offset == plan::Affine{});
      CHECK(part.bytes == bytes[task.name]);
    }
  }
  CHECK(joined > 0);
}

namespace {

// Layers that are large enough to be shared out, biases that are not.
const std::string kWide = R"(graph "wide" rows 4 micro_batches 2 replicas 2
feed %x: f32[4,64]
feed %weights: f32[4,1]
state parameter %w0: f32[64,64] = normal(0.0, 0.1, seed 1)
state parameter %b0: f32[64] = zero
state parameter %w1: f32[64,64] = normal(0.0, 0.1, seed 2)
%m0 = matmul(%x, %w0) "layer.0"
%a0 = add(%m0, %b0) "layer.0"
%h0 = tanh(%a0) "layer.0"
%m1 = matmul(%h0, %w1) "layer.1"
%h1 = tanh(%m1) "layer.1"
%again = matmul(%h1, %w0) {transpose_b=1} "head"
%s = mul(%again, %again) "loss"
%ws = mul(%s, %weights) "loss"
%total = reduce_sum(%ws) {axes=[0,1]} "loss"
%count = reduce_sum(%weights) {axes=[0,1]} "loss"
%loss = div(%total, %count) "loss"
output "loss" %loss
)";

plan::Plan wide_plan(int64_t pp, Sharding sharding) {
  Settings settings{0, {pp, 2, 1}, 2};
  settings.sharding = sharding;
  return plan_on(kWide, settings);
}

int64_t moment_bytes(const plan::Plan& plan, const std::string& name) {
  for (const plan::State& state : plan.states) {
    if (state.role != "moment" || state.name != name) continue;
    for (const plan::Buffer& buffer : plan.positions[0].buffers) {
      if (buffer.name == state.buffer) return buffer.bytes;
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("replicas that share out moments have sound plans") {
  for (const int64_t pp : {1, 2, 3}) {
    const plan::Plan plan = wide_plan(pp, Sharding::kOptimizer);
    INFO(pp << " stages");
    CHECK(fault_texts(plan) == "");
    CHECK(moment_bytes(plan, "w0.exp_avg") == 64 * 64 * 4 / 2);
    CHECK(moment_bytes(plan, "b0.exp_avg") == 64 * 4);
    CHECK(moment_bytes(wide_plan(pp, Sharding::kNone), "w0.exp_avg") == 64 * 64 * 4);
  }
}

TEST_CASE("new shards are computed within the parameter and gathered from there") {
  const plan::Plan plan = wide_plan(1, Sharding::kOptimizer);
  int64_t gathers = 0;
  for (const plan::Task& task : plan.positions[0].tasks) {
    if (task.kind != "all_gather") continue;
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      ++gathers;
      CHECK(task.inputs[i].buffer == task.outputs[i].buffer);
      CHECK(task.inputs[i].offset == plan::Affine{0, 64 * 64 * 4 / 2, 0});
      CHECK(task.inputs[i].bytes == 64 * 64 * 4 / 2);
    }
  }
  CHECK(gathers == 2);
}

TEST_CASE("what is reduced whole does not cut the buckets of what is scattered") {
  std::map<std::string, int64_t> buckets;
  for (const plan::Task& task : wide_plan(1, Sharding::kOptimizer).positions[0].tasks) {
    if (task.name.rfind("reduce_bucket_", 0) == 0) ++buckets[task.kind];
  }
  CHECK(buckets["all_reduce"] == 1);
  CHECK(buckets["reduce_scatter"] == 3);
}

TEST_CASE("a plan whose shards do not make up the tensor is refused") {
  plan::Plan plan = wide_plan(1, Sharding::kOptimizer);
  for (plan::State& state : plan.states) {
    if (state.name == "w0.exp_avg") state.shards = 4;
  }
  CHECK_THAT(fault_texts(plan), ContainsSubstring("only moments have shards, as many as replicas"));
  for (plan::State& state : plan.states) {
    if (state.name == "w0.exp_avg") state.shards = 2, state.shape = {64, 63};
  }
  CHECK_THAT(fault_texts(plan), ContainsSubstring("a shard has an equal part of 4032 elements"));
}
