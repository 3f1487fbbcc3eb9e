// Plans of several ranks, made by hand and run by real executors over loopback.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/allocations.h"
#include "runtime/arena.h"
#include "runtime/communication/ranks.h"
#include "runtime/executor.h"
#include "runtime/regression_program.h"
#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kElements = 1000;

// Arguments: in, out. out = 2 * in + the global micro-batch.
void double_kernel(void* const* arguments, int64_t begin, int64_t end, int64_t micro_batch) {
  const float* in = static_cast<const float*>(arguments[0]);
  float* out = static_cast<float*>(arguments[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = 2 * in[i] + static_cast<float>(micro_batch);
}

// Arguments: in, sum. sum += in.
void add_kernel(void* const* arguments, int64_t begin, int64_t end, int64_t) {
  const float* in = static_cast<const float*>(arguments[0]);
  float* sum = static_cast<float*>(arguments[1]);
  for (int64_t i = begin; i < end; ++i) sum[i] += in[i];
}

void nothing_kernel(void* const*, int64_t, int64_t, int64_t) {}

void sleep_kernel(void* const*, int64_t, int64_t, int64_t) { usleep(20000); }

const SgtcKernel kKernels[] = {
    {"double", double_kernel}, {"add", add_kernel}, {"sleep", sleep_kernel}};

plan::Call call_of(const std::string& kernel, const std::vector<std::string>& buffers) {
  plan::Call call;
  call.kernel = kernel;
  for (const std::string& buffer : buffers) call.arguments.push_back({buffer, {}, 0});
  return call;
}

plan::Task communication(const std::string& name, const std::string& kind,
                         const std::string& communicator, int64_t peer, plan::Argument part) {
  plan::Task task;
  task.name = name;
  task.kind = kind;
  task.communicator = communicator;
  task.peer = peer;
  task.dtype = "f32";
  task.reduce = "sum";
  if (kind != "receive") task.inputs = {part};
  if (kind != "send") task.outputs = {part};
  return task;
}

plan::Entry slotted(const std::string& task, int64_t micro_batch, int64_t slot, int64_t stream = 0,
                    std::vector<int64_t> waits = {}) {
  plan::Entry entry = entry_of(task, micro_batch, stream, std::move(waits));
  entry.slot = slot;
  return entry;
}

plan::Plan plan_of(int64_t pp, int64_t dp, int64_t micro_batches) {
  plan::Plan plan;
  plan.mesh = {{"pp", pp}, {"dp", dp}, {"tp", 1}};
  plan.micro_batches = micro_batches;
  plan.kernels = {kernel_of("double", kElements), kernel_of("add", kElements),
                  kernel_of("sleep", 1)};
  plan.positions.resize(static_cast<size_t>(pp));
  return plan;
}

struct RankResult {
  std::vector<float> values;  // of the buffer "result"
  std::string trace;
};

enum class Tracing { off, on };

// Runs `steps` steps of every rank. All buffers called "x" start as micro-batch + rank.
std::vector<RankResult> run_plan(const plan::Plan& plan, int steps, Tracing tracing = Tracing::on) {
  const int64_t ranks = world_size(plan);
  std::vector<RankResult> results(static_cast<size_t>(ranks));
  run_as_threads(groups_of(plan), ranks, [&](int64_t rank, RankCommunicators& communicators) {
    const Coordinates coordinates = coordinates_of(plan, rank);
    const plan::Position& position = plan.positions[static_cast<size_t>(coordinates.pp)];
    const Arena arena(position.arena_bytes);
    const PlanMemory memory(position, arena);
    if (const plan::Buffer* x = memory.find("x")) {
      for (int64_t m = 0; m < x->count; ++m) {
        float* data = reinterpret_cast<float*>(memory.address(*x, m));
        std::fill(data, data + kElements, static_cast<float>(m + rank));
      }
    }
    Program program;
    program.kernels = kKernels;
    program.kernel_count = std::size(kKernels);
    ThreadPool threads(1);
    const PreparedSchedule schedule =
        prepare_schedule(plan, coordinates, "train", program, memory, &communicators);
    Trace trace(1000, rank);
    Executor executor(threads, &communicators);
    for (int step = 1; step <= steps; ++step)
      executor.run(schedule, step, tracing == Tracing::on ? &trace : nullptr);
    RankResult& result = results[static_cast<size_t>(rank)];
    const float* values = reinterpret_cast<const float*>(memory.address(memory.buffer("result")));
    result.values.assign(values, values + kElements);
    result.trace = trace.items();
    return Bytes();
  });
  return results;
}

constexpr int64_t kBytes = kElements * 4;

// Two positions, four micro-batches, 1F1B with two slots. Position 0 doubles x and sends h;
// position 1 doubles h to d and sends d back, which position 0 adds up; position 1 adds up h.
plan::Plan pipeline(int64_t dp) {
  plan::Plan plan = plan_of(2, dp, 4);
  plan.communicators = {{"down", "pp", 0}, {"up", "pp", 0}, {"gradients", "dp", 0}};
  plan::Position& first = plan.positions[0];
  add_buffer(first, "x", "micro_batch", {kElements}, kBytes, 4);
  add_buffer(first, "h", "slot", {kElements}, kBytes, 2);
  add_buffer(first, "d", "slot", {kElements}, kBytes, 2);
  add_buffer(first, "result", "persistent", {kElements}, kBytes);
  first.tasks = {compute_task("forward", {call_of("double", {"x", "h"})}),
                 communication("send_h", "send", "down", 1, {"h", {}, 0}),
                 communication("receive_d", "receive", "up", 1, {"d", {}, 0}),
                 compute_task("backward", {call_of("add", {"d", "result"})}),
                 communication("reduce", "all_reduce", "gradients", -1, {"result", {}, 0})};
  first.schedules["train"] = {slotted("forward", 0, 0),            // 0
                              slotted("send_h", 0, 0, 1, {0}),     // 1
                              slotted("forward", 1, 1),            // 2
                              slotted("send_h", 1, 1, 1, {2}),     // 3
                              slotted("receive_d", 0, 0, 2),       // 4
                              slotted("backward", 0, 0, 0, {4}),   // 5
                              slotted("forward", 2, 0, 0, {1}),    // 6
                              slotted("send_h", 2, 0, 1, {6}),     // 7
                              slotted("receive_d", 1, 1, 2),       // 8
                              slotted("backward", 1, 1, 0, {8}),   // 9
                              slotted("forward", 3, 1, 0, {3}),    // 10
                              slotted("send_h", 3, 1, 1, {10}),    // 11
                              slotted("receive_d", 2, 0, 2, {5}),  // 12
                              slotted("backward", 2, 0, 0, {12}),  // 13
                              slotted("receive_d", 3, 1, 2, {9}),  // 14
                              slotted("backward", 3, 1, 0, {14}),  // 15
                              slotted("reduce", 0, 0, 3, {15})};
  plan::Position& second = plan.positions[1];
  add_buffer(second, "h", "slot", {kElements}, kBytes, 2);
  add_buffer(second, "d", "slot", {kElements}, kBytes, 2);
  add_buffer(second, "result", "persistent", {kElements}, kBytes);
  second.tasks = {
      communication("receive_h", "receive", "down", 0, {"h", {}, 0}),
      compute_task("both", {call_of("double", {"h", "d"}), call_of("add", {"h", "result"})}),
      communication("send_d", "send", "up", 0, {"d", {}, 0}),
      communication("reduce", "all_reduce", "gradients", -1, {"result", {}, 0})};
  std::vector<plan::Entry>& entries = second.schedules["train"];
  for (int64_t m = 0; m < 4; ++m) {
    const int64_t at = 3 * m;
    std::vector<int64_t> free_h;
    std::vector<int64_t> ready = {at};
    if (m >= 2) free_h = {at - 5}, ready.push_back(at - 4);
    entries.push_back(slotted("receive_h", m, m % 2, 1, free_h));
    entries.push_back(slotted("both", m, m % 2, 0, ready));
    entries.push_back(slotted("send_d", m, m % 2, 2, {at + 1}));
  }
  entries.push_back(slotted("reduce", 0, 0, 3, {10}));
  return plan;
}

}  // namespace

TEST_CASE("a pipeline of two positions runs one forward, one backward") {
  const auto results = run_plan(pipeline(1), 1);
  // h = 2 m + m, d = 2 h + m = 7 m; the sums over m = 0..3 are 18 and 42.
  CHECK(results[0].values == std::vector<float>(kElements, 42));
  CHECK(results[1].values == std::vector<float>(kElements, 18));
}

TEST_CASE("replicas compute their own micro-batches and reduce over dp") {
  const auto results = run_plan(pipeline(2), 1);
  // Replica 1 (rank 1): x = m + 1, global micro-batch g = m + 4; h = 2 x + g = 3 m + 6,
  // d = 2 h + g = 7 m + 16: sums 42 and 106. Added to replica 0's: 60 and 148.
  for (const size_t rank : {0, 1}) {
    CHECK(results[rank].values == std::vector<float>(kElements, 148));
  }
  for (const size_t rank : {2, 3}) {
    CHECK(results[rank].values == std::vector<float>(kElements, 60));
  }
}

TEST_CASE("many steps of a pipeline neither hang nor mix micro-batches") {
  const auto results = run_plan(pipeline(1), 200);
  CHECK(results[0].values == std::vector<float>(kElements, 42 * 200));
}

TEST_CASE("steps of several ranks do not allocate") {
  const plan::Plan plan = pipeline(2);
  const auto allocations_of = [&](int steps) {
    const int64_t before = allocation_count();
    run_plan(plan, steps, Tracing::off);
    return allocation_count() - before;
  };
  allocations_of(1);
  CHECK(allocations_of(40) == allocations_of(2));
}

TEST_CASE("offsets depend on the rank's coordinates") {
  plan::Plan plan = plan_of(1, 2, 1);
  plan.communicators = {{"gradients", "dp", 0}};
  plan::Position& position = plan.positions[0];
  add_buffer(position, "x", "micro_batch", {kElements}, kBytes);
  add_buffer(position, "result", "persistent", {kElements}, kBytes);
  const plan::Argument half = {"result", {0, kBytes / 2, 0}, kBytes / 2};
  plan::Task scatter = communication("scatter", "reduce_scatter", "gradients", -1, half);
  scatter.inputs = {{"x", {}, 0}};
  plan::Task gather = communication("gather", "all_gather", "gradients", -1, half);
  gather.outputs = {{"result", {}, 0}};
  position.tasks = {scatter, gather};
  position.schedules["train"] = {entry_of("scatter", 0, 1), entry_of("gather", 0, 1)};
  for (const RankResult& result : run_plan(plan, 3)) {
    CHECK(result.values == std::vector<float>(kElements, 1));
  }
}

TEST_CASE("communication overlaps computation that does not wait for it") {
  plan::Plan plan = plan_of(1, 2, 1);
  plan.communicators = {{"gradients", "dp", 0}};
  plan::Position& position = plan.positions[0];
  add_buffer(position, "result", "persistent", {kElements}, kBytes);
  position.tasks = {compute_task("compute", {call_of("sleep", {})}),
                    communication("reduce", "all_reduce", "gradients", -1, {"result", {}, 0})};
  position.schedules["train"] = {entry_of("compute"), entry_of("reduce", 0, 1, {0}),
                                 entry_of("compute")};
  for (const RankResult& result : run_plan(plan, 1)) {
    const nlohmann::json items = nlohmann::json::parse("[" + result.trace + "]");
    const auto event = [&](const std::string& name, int which) {
      for (const nlohmann::json& item : items) {
        if (item["name"] == name && which-- == 0) return item;
      }
      return nlohmann::json();
    };
    const nlohmann::json reduce = event("reduce", 0);
    const nlohmann::json later = event("compute", 1);
    CHECK(reduce["tid"] == 1);
    CHECK(reduce["ts"].get<double>() < later["ts"].get<double>() + later["dur"].get<double>());
    CHECK(reduce["ts"].get<double>() + reduce["dur"].get<double>() <
          later["ts"].get<double>() + later["dur"].get<double>());
  }
}

TEST_CASE("the plans of the documentation run to their end, many times") {
  for (const char* name : {"zb-v", "zero3", "tp2"}) {
    CAPTURE(name);
    const std::string path = std::string(SGTC_SOURCE_DIR "/docs/plan-format/") + name + ".json";
    const plan::Plan plan = nlohmann::json::parse(read_file(path)).get<plan::Plan>();
    std::vector<SgtcKernel> kernels;
    for (const plan::Kernel& kernel : plan.kernels) {
      kernels.push_back({kernel.symbol.c_str(), nothing_kernel});
    }
    Program program;
    program.kernels = kernels.data();
    program.kernel_count = static_cast<int64_t>(kernels.size());
    std::atomic<int> finished{0};
    run_as_threads(groups_of(plan), world_size(plan), [&](int64_t rank, RankCommunicators& c) {
      const Coordinates coordinates = coordinates_of(plan, rank);
      const plan::Position& position = plan.positions[static_cast<size_t>(coordinates.pp)];
      const Arena arena(position.arena_bytes);
      const PlanMemory memory(position, arena);
      const PreparedSchedule train =
          prepare_schedule(plan, coordinates, "train", program, memory, &c);
      ThreadPool threads(1);
      Executor executor(threads, &c);
      for (int step = 1; step <= 50; ++step) executor.run(train, step, nullptr);
      ++finished;
      return Bytes();
    });
    CHECK(finished == world_size(plan));
  }
}

// CPUs that each thread of this process may use, by its number.
std::map<std::string, int> cpus_of_threads() {
  std::map<std::string, int> cpus;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = thread.path().filename();
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(std::stoi(id), sizeof set, &set) == 0) cpus[id] = CPU_COUNT(&set);
  }
  return cpus;
}

TEST_CASE("communication has a CPU to itself only where ranks do not share theirs") {
  const int all = static_cast<int>(allowed_cpus().size());
  for (const bool has_own_cpu : {true, false}) {
    CAPTURE(has_own_cpu);
    Bell bell;
    CalmWatch watch;
    RankCommunicators communicators(bell, watch, has_own_cpu);
    ThreadPool threads(1);
    const std::map<std::string, int> before = cpus_of_threads();
    const Executor executor(threads, &communicators);
    std::map<std::string, int> now = cpus_of_threads();
    for (const auto& [thread, cpus] : before) now.erase(thread);
    REQUIRE(now.size() == 1);
    CHECK(now.begin()->second == (has_own_cpu && all > 1 ? all - 1 : all));
  }
}

TEST_CASE("a group of a plan is issued as one, so that both ends may send first") {
  plan::Plan plan = plan_of(2, 1, 1);
  plan.communicators = {{"exchange", "pp", 0}};
  constexpr int64_t kLarge = 4 << 20;
  for (int64_t pp : {0, 1}) {
    plan::Position& position = plan.positions[static_cast<size_t>(pp)];
    add_buffer(position, "out", "step", {kLarge / 4}, kLarge);
    add_buffer(position, "result", "persistent", {kLarge / 4}, kLarge);
    position.tasks = {communication("send", "send", "exchange", 1 - pp, {"out", {}, 0}),
                      communication("receive", "receive", "exchange", 1 - pp, {"result", {}, 0})};
    plan::Entry send = entry_of("send", 0, 1);
    plan::Entry receive = entry_of("receive", 0, 1);
    send.group = receive.group = 0;
    position.schedules["train"] = {send, receive};
  }
  for (const RankResult& result : run_plan(plan, 2)) {
    CHECK(result.values == std::vector<float>(kElements, 0));
  }
}

}  // namespace sgtc::runtime
