// What verify_plan demands of launches on GPUs: each fault is planted alone into a sound plan.
#include <functional>

#include "plan/verify.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

// One kernel that reads x by a tensor map and writes y: bf16[32,64] both.
plan::Plan sound_plan() {
  plan::Plan plan;
  plan.target = "sm_90a";
  plan.multiprocessors = 132;
  plan.mesh = {{"pp", 1}, {"dp", 1}, {"tp", 1}};
  plan::Kernel kernel;
  kernel.symbol = "k_copy";
  kernel.blocks = 132;
  kernel.access = {"read", "write"};
  kernel.launch = {384, 200 << 10, 2, true, {{0, 0, "bf16", {64, 32}, {128}, {64, 32}}}};
  plan.kernels = {kernel};
  plan::Position position;
  position.stages = {0};
  position.arena_bytes = 8192;
  position.buffers = {{"x", "persistent", "bf16", {32, 64}, 4096, 0, 0, 1},
                      {"y", "step", "bf16", {32, 64}, 4096, 4096, 0, 1}};
  plan::Task task;
  task.name = "forward";
  task.kind = "compute";
  task.calls = {{"k_copy", {{"x", {}, 0}, {"y", {}, 0}}, {}}};
  position.tasks = {task};
  position.schedules["train"] = {{"forward", 0, 0, 0, 0, -1, {}}};
  plan.positions = {position};
  return plan;
}

std::string faults_of(const plan::Plan& plan) {
  std::string text;
  for (const PlanFault& fault : verify_plan(plan)) text += to_string(fault) + "\n";
  return text;
}

// The only fault of a plan into which `plant` put one.
std::string fault_after(const std::function<void(plan::Plan&)>& plant) {
  plan::Plan plan = sound_plan();
  plant(plan);
  return faults_of(plan);
}

std::string launch_fault(const std::function<void(plan::Launch&)>& plant) {
  return fault_after([&](plan::Plan& plan) { plant(plan.kernels[0].launch); });
}

std::string map_fault(const std::function<void(plan::TensorMap&)>& plant) {
  return launch_fault([&](plan::Launch& launch) { plant(launch.tensor_maps[0]); });
}

const std::string kKernel = "plan: kernel \"k_copy\": ";
const std::string kMap = kKernel + "tensor map: ";

}  // namespace

TEST_CASE("a sound launch has no faults") { CHECK(faults_of(sound_plan()) == ""); }

TEST_CASE("targets are known, and GPUs have multiprocessors") {
  CHECK(fault_after([](plan::Plan& plan) { plan.target = "sm_70"; }) ==
        "plan: the target is cpu, sm_80 or sm_90a, found \"sm_70\"\n");
  CHECK_THAT(fault_after([](plan::Plan& plan) { plan.multiprocessors = 0; }),
             ContainsSubstring("plan: a GPU has multiprocessors, found none\n"));
}

TEST_CASE("a program for CPUs has nothing of GPUs") {
  CHECK(fault_after([](plan::Plan& plan) { plan.target = "cpu"; }) ==
        "plan: a CPU has no multiprocessors\n" + kKernel + "is for GPUs, the target is cpu\n");
}

TEST_CASE("blocks have whole warps, at most 32 of them") {
  for (const int64_t threads : {0, 31, 48, 1056}) {
    CHECK(launch_fault([&](plan::Launch& launch) { launch.threads = threads; }) ==
          kKernel + "threads are a multiple of 32 from 32 to 1024, found " +
              std::to_string(threads) + "\n");
  }
}

TEST_CASE("a grid has blocks") {
  CHECK_THAT(fault_after([](plan::Plan& plan) { plan.kernels[0].blocks = 0; }),
             ContainsSubstring(kKernel + "blocks are from 1 to 2147483647, found 0\n"));
}

TEST_CASE("shared memory is that of the architecture") {
  CHECK(launch_fault([](plan::Launch& launch) { launch.shared_bytes = 232449; }) ==
        kKernel + "bytes of shared memory are from 0 to 232448, found 232449\n");
  const std::string smaller = fault_after([](plan::Plan& plan) {
    plan.target = "sm_80";
    plan.kernels[0].launch = {256, 166913, 1, false, {}};
  });
  CHECK(smaller == kKernel + "bytes of shared memory are from 0 to 166912, found 166913\n");
}

TEST_CASE("clusters divide the grid, where there are any") {
  CHECK(launch_fault([](plan::Launch& launch) { launch.cluster = 5; }) ==
        kKernel + "clusters of 5 do not divide a grid of 132\n");
  CHECK(launch_fault([](plan::Launch& launch) { launch.cluster = 12; }) ==
        kKernel + "blocks of a cluster are from 1 to 8, found 12\n");
  const std::string ampere = fault_after([](plan::Plan& plan) {
    plan.target = "sm_80";
    plan.kernels[0].launch.shared_bytes = 0;
  });
  CHECK(ampere == kKernel + "blocks of a cluster are from 1 to 1, found 2\n" + kKernel +
                      "has tensor maps, which sm_80 does not know\n");
}

TEST_CASE("blocks that wait for each other fit on the GPU at once") {
  const auto grow = [](plan::Plan& plan) { plan.kernels[0].blocks = 134; };
  CHECK(fault_after(grow) ==
        kKernel + "blocks that wait for each other are from 1 to 132, found 134\n");
  CHECK(fault_after([&](plan::Plan& plan) {
          grow(plan);
          plan.kernels[0].launch.resident = false;
        }) == "");
}

TEST_CASE("arguments are parameters, as many as a kernel may have, or in a table") {
  const auto with_arguments = [](plan::Plan& plan, size_t count) {
    plan.kernels[0].access.resize(count, "read");
    plan.positions[0].tasks[0].calls[0].arguments.resize(count, {"x", {}, 0});
  };
  CHECK(fault_after([&](plan::Plan& plan) { with_arguments(plan, 500); }) == "");
  CHECK(fault_after([&](plan::Plan& plan) { with_arguments(plan, 501); }) ==
        kKernel + "arguments that are parameters are from 0 to 500, found 501\n");
  CHECK(fault_after([&](plan::Plan& plan) {
          with_arguments(plan, 501);
          plan.kernels[0].launch.tensor_maps.clear();
          plan.kernels[0].launch.indirect = true;
        }) == "");
  CHECK(launch_fault([](plan::Launch& launch) { launch.indirect = true; }) ==
        kKernel + "has its arguments in a table, and tensor maps, which only parameters go with\n");
}

TEST_CASE("tensor maps are what the copy engine takes") {
  CHECK(map_fault([](plan::TensorMap& map) { map.argument = 2; }) ==
        kMap + "there is no argument 2\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.dtype = "b16"; }) ==
        kMap + "unknown dtype \"b16\"\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.box = {64}; }) ==
        kMap +
            "2 to 5 sizes, as many of the box and a stride less are expected, found 2, 1 and 1\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.sizes[1] = 0; }) ==
        kMap + "sizes are from 1 to 4294967295, found 0\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.box[1] = 257; }) ==
        kMap + "sizes of a box are from 1 to 256, found 257\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.strides[0] = 136; }) ==
        kMap + "strides are multiples of 16 below 2^40, found 136\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.offset = 8; }) ==
        kMap + "the offset is a multiple of 16, found 8\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.box[0] = 72; }) ==
        kMap + "a row of the box has up to 128 bytes, a multiple of 16; found 144\n");
}

TEST_CASE("communicators of GPUs have thread blocks") {
  const auto fault = [](int64_t blocks) {
    return fault_after([&](plan::Plan& plan) { plan.communicators = {{"dp", "dp", blocks}}; });
  };
  CHECK(fault(1).empty());
  CHECK(fault(32).empty());
  CHECK(fault(0) == "plan: communicator \"dp\": blocks are from 1 to 32, found 0\n");
  CHECK(fault(33) == "plan: communicator \"dp\": blocks are from 1 to 32, found 33\n");
}

TEST_CASE("tensors lie inside their arguments") {
  const std::string place = "position 0, task forward, buffer x: a tensor map ends at byte ";
  CHECK(map_fault([](plan::TensorMap& map) { map.sizes[1] = 33; }) ==
        place + "4224 of 4096 of the argument\n");
  CHECK(map_fault([](plan::TensorMap& map) { map.offset = 16; }) ==
        place + "4112 of 4096 of the argument\n");
  CHECK(map_fault([](plan::TensorMap& map) {
          map.sizes = {64, UINT32_MAX, UINT32_MAX};
          map.strides = {128, int64_t{1} << 39};
          map.box = {64, 32, 1};
        }) == place + "9223372036854775807 of 4096 of the argument\n");
}

TEST_CASE("arguments lie at multiples of 16 bytes") {
  CHECK(fault_after([](plan::Plan& plan) {
          plan.positions[0].arena_bytes += 8;
          plan.positions[0].buffers[1].offset += 8;
        }) ==
        "position 0, task forward, buffer y: arguments are multiples of 16 bytes, found 4104\n");
}
