#include "runtime/access_check.h"

#include <cstring>
#include <string>
#include <vector>

#include "runtime/child.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"
#include "runtime/regression_program.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

using Strings = std::vector<std::string>;
const Strings kReadWrite = {"read", "write"};

float* floats(void* argument) { return static_cast<float*>(argument); }

constexpr int64_t kOther = 16;  // floats from one buffer to the next

// Each copies the 4 floats of its first argument to its second, behind which "other" lies, and some
// do more.
void copy(void* const* arguments, int64_t, int64_t, int64_t) {
  std::memcpy(arguments[1], arguments[0], 16);
}
void copy_some(void* const* arguments, int64_t, int64_t, int64_t) {
  std::memcpy(arguments[1], arguments[0], 12);
}
void write_beyond(void* const* arguments, int64_t, int64_t, int64_t) {
  copy(arguments, 0, 1, 0);
  floats(arguments[1])[kOther + 1] = 99;
}
void write_input(void* const* arguments, int64_t, int64_t, int64_t) {
  copy(arguments, 0, 1, 0);
  floats(arguments[0])[3] += 1;
}
void read_beyond(void* const* arguments, int64_t, int64_t, int64_t) {
  copy(arguments, 0, 1, 0);
  floats(arguments[1])[2] += floats(arguments[1])[kOther];
}
void read_output(void* const* arguments, int64_t, int64_t, int64_t) {
  for (int i = 0; i < 4; ++i) floats(arguments[1])[i] += floats(arguments[0])[i];
}

const SgtcKernel kKernels[] = {{"copy", copy},
                               {"copy_some", copy_some},
                               {"write_beyond", write_beyond},
                               {"write_input", write_input},
                               {"read_beyond", read_beyond},
                               {"read_output", read_output}};

plan::Plan plan_of(const std::string& kernel, Strings access) {
  plan::Plan plan;
  plan.kernels = {kernel_of(kernel, 1)};
  plan.kernels[0].access = std::move(access);
  plan::Position position;
  for (const char* name : {"from", "to", "other"}) add_buffer(position, name, "step", {4}, 16, 1);
  plan::Call call;
  call.kernel = kernel;
  call.arguments = {{"from", {}, 16}, {"to", {}, 16}};
  position.tasks = {compute_task("work", {call})};
  position.schedules["train"] = {{entry_of("work")}};
  plan.positions = {position};
  return plan;
}

// The arena's floats after the kernel, which begin as 0, 1, 2 and so on.
std::vector<float> run(const std::string& kernel, const Strings& access = kReadWrite) {
  const plan::Plan plan = plan_of(kernel, access);
  const plan::Position& position = plan.positions[0];
  const Arena arena(position.arena_bytes);
  const PlanMemory memory(position, arena);
  std::vector<float> values(static_cast<size_t>(position.arena_bytes) / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::memcpy(arena.data(), values.data(), values.size() * sizeof(float));
  Program program;
  program.kernels = kKernels;
  program.kernel_count = std::size(kKernels);
  const PreparedSchedule schedule = prepare_schedule(plan, {}, "train", program, memory);
  const HostMemory host(arena);
  AccessCheck check(host, arena, position);
  ThreadPool threads(1);
  Executor(threads, nullptr, &check).run(schedule, 1, nullptr);
  std::memcpy(values.data(), arena.data(), values.size() * sizeof(float));
  return values;
}

std::string message(const std::string& kernel, const Strings& access = kReadWrite) {
  const ChildResult result =
      run_child([&] { return static_cast<int>(run(kernel, access).size()); });
  CHECK(result.code == 1);
  return result.errors;
}

}  // namespace

TEST_CASE("a kernel that touches what the plan says runs once, to all appearances") {
  const std::vector<float> copied = run("copy");
  CHECK(std::vector<float>(copied.begin() + kOther, copied.begin() + kOther + 5) ==
        std::vector<float>{0, 1, 2, 3, kOther + 4});
  const std::vector<float> added = run("read_output", {"read", "update"});
  CHECK(added[kOther + 3] == 3 + kOther + 3);
}

TEST_CASE("a kernel may leave a part of what it writes alone") {
  const std::vector<float> copied = run("copy_some");
  CHECK(copied[kOther + 2] == 2);
  CHECK(copied[kOther + 3] == kOther + 3);
}

TEST_CASE("a kernel that writes more than the plan says is named, with the buffer") {
  CHECK(
      message("write_beyond") ==
      "error: kernel write_beyond of task work: touches more than the plan says: it writes at byte "
      "134 of the arena (other); please report this\n");
  CHECK(
      message("write_input") ==
      "error: kernel write_input of task work: touches more than the plan says: it writes at byte "
      "14 of the arena (from); please report this\n");
}

TEST_CASE("a kernel that reads more than the plan says is named, with what it writes") {
  const auto names = [](const std::string& text) {
    INFO(text);
    CHECK(text.find("it writes something else once other memory has changed, at byte ") !=
          std::string::npos);
    CHECK(text.find(" of the arena (to)") != std::string::npos);
  };
  names(message("read_beyond"));
  names(message("read_output"));
}

}  // namespace sgtc::runtime
