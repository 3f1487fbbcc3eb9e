// Whole runs on the stub of the CUDA driver: they give the bits of the same program on the CPU.
#include "cuda/cuda_device.h"

#include <limits>

#include "runtime/cuda/stub_run.h"
#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

using Strings = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

// What a run with a log and saved weights leaves behind.
struct Outcome {
  std::vector<nlohmann::json> losses, norms, eval_losses;
  std::string weights, prediction;
};

Outcome outcome_of(const TemporaryFolder& folder) {
  return {log_values(folder / "log", "loss"), log_values(folder / "log", "grad_norm"),
          log_values(folder / "log", "eval_loss"), read_file(folder / "w.safetensors"),
          read_file(folder / "p.npy")};
}

Strings full_run(const RegressionRun& run, const Strings& more = {}) {
  Strings all = {"--steps",
                 "9",
                 "--lr",
                 "0.1",
                 "--shuffle",
                 "--log",
                 run.folder / "log",
                 "--save",
                 run.folder / "w.safetensors",
                 "--eval",
                 "x=" + run.folder / "x.npy",
                 "--eval",
                 "y=" + run.folder / "y.npy",
                 "--eval-every",
                 "4",
                 "--predict",
                 "prediction=" + run.folder / "p.npy"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void check_equal(const Outcome& found, const Outcome& expected) {
  CHECK(found.losses == expected.losses);
  CHECK(found.norms == expected.norms);
  CHECK(found.eval_losses == expected.eval_losses);
  CHECK(found.weights == expected.weights);
  CHECK(found.prediction == expected.prediction);
}

Outcome cpu_outcome() {
  const RegressionRun cpu;
  REQUIRE(cpu.run(full_run(cpu)).code == 0);
  return outcome_of(cpu.folder);
}

}  // namespace

TEST_CASE("a GPU trains, evaluates and predicts as the CPU does") {
  const Outcome expected = cpu_outcome();
  REQUIRE(expected.losses.size() == 9);
  const StubRun gpu;
  const ChildResult graphs = gpu.run(full_run(gpu.regression), {{"SGTC_POISON", "1"}});
  INFO(graphs.errors);
  REQUIRE(graphs.code == 0);
  check_equal(outcome_of(gpu.folder()), expected);
  REQUIRE(gpu.run(full_run(gpu.regression), {{"SGTC_STEPWISE", "1"}}).code == 0);
  check_equal(outcome_of(gpu.folder()), expected);
}

TEST_CASE("a GPU resumes from a checkpoint with the same bits") {
  const StubRun gpu;
  const std::string weights = gpu.folder() / "w.safetensors";
  const auto train = [&](const char* steps, const Strings& more) {
    Strings all = {"--steps", steps, "--save", weights};
    all.insert(all.end(), more.begin(), more.end());
    const ChildResult result = gpu.run(all);
    INFO(result.errors);
    REQUIRE(result.code == 0);
    return read_file(weights);
  };
  const std::string expected = train("10", {});
  const Strings checkpoint = {"--checkpoint", gpu.folder() / "c", "--save-every", "3", "--resume",
                              "auto"};
  CHECK(train("7", checkpoint) != expected);
  CHECK(train("10", checkpoint) == expected);
}

TEST_CASE("a step that is not finite is skipped and counted, or ends the run") {
  const StubRun gpu;
  std::vector<float> y(24, 1.0F);
  y[7] = std::numeric_limits<float>::infinity();
  write_npy(gpu.folder() / "y.npy", "f32", {24}, y);
  const ChildResult skipped = gpu.run({"--steps", "4", "--log", gpu.folder() / "log"});
  CHECK(skipped.code == 0);
  CHECK(contains(skipped.output, "1 of 4 steps were skipped"));
  CHECK(log_values(gpu.folder() / "log", "skipped") ==
        std::vector<nlohmann::json>{false, true, false, false});
  const ChildResult stopped = gpu.run({"--steps", "4", "--on-nan", "stop"});
  CHECK(stopped.code == 1);
  CHECK(stopped.errors.find("error: step 2: loss or gradient is not finite") == 0);
}

TEST_CASE("an index out of range names its node, at most one step late") {
  const StubRun gpu;
  std::vector<float> x(24 * kWidth, 1.0F);
  std::fill_n(x.begin() + 6 * kWidth, kWidth, 1e30F);  // the second step
  write_npy(gpu.folder() / "x.npy", "f32", {24, kWidth}, x);
  const ChildResult result = gpu.run({"--steps", "4", "--log", gpu.folder() / "log"});
  CHECK(result.code == 1);
  CHECK(result.errors ==
        "error: node dot: index 7 is out of range for extent 5; check the index data that is "
        "fed\n");
  CHECK(log_values(gpu.folder() / "log", "loss").size() == 1);
  CHECK(gpu.calls({"cuGraphLaunch"}).size() == 3);
}

TEST_CASE("the graph has the plan's kernels in the plan's order") {
  const StubRun gpu;
  REQUIRE(gpu.run({"--steps", "1"}).code == 0);
  CHECK(gpu.calls({"node"}) ==
        Strings{"node 0 clear 132 after",  // the status block, gradient and loss
                "node 1 forward 2x128 after 0", "node 2 backward 4x128 after 1",
                "node 3 forward 2x128 after 2", "node 4 backward 4x128 after 3",
                "node 5 forward 2x128 after 4", "node 6 backward 4x128 after 5",
                "node 7 update 1x32+1024 after 6",
                // evaluation
                "node 0 clear 132 after", "node 1 evaluate 1x32 after 0",
                "node 2 evaluate 1x32 after 1", "node 3 evaluate 1x32 after 2"});
  CHECK(gpu.calls({"cuInit"}) == Strings{"cuInit connections 32"});
  CHECK(gpu.calls({"cuFuncSetAttribute update"}) == Strings{"cuFuncSetAttribute update 8 1024"});
}

TEST_CASE("a step starts before the results of the one before are read") {
  const StubRun gpu;
  REQUIRE(gpu.run({"--steps", "3"}).code == 0);
  Strings calls = gpu.calls({"cuGraphLaunch", "cuEventSynchronize", "cuStreamSynchronize"});
  calls.erase(std::remove(calls.begin(), calls.end(), "cuStreamSynchronize"), calls.end());
  // Before each launch the host waits for the copy of inputs of the step before, which does not
  // wait for that step; after it, for the results of the step before.
  const std::string wait = "cuEventSynchronize";
  const std::string launch = "cuGraphLaunch";
  CHECK(calls == Strings{wait, launch, wait, launch, wait, wait, launch, wait, wait});
}

TEST_CASE("a dry run tells about the GPU") {
  const StubRun gpu;
  const ChildResult result = gpu.run({"--dry-run"}, {{"SGTC_POISON", "1"}});
  INFO(result.errors);
  CHECK(result.code == 0);
  CHECK(contains(result.output, "bytes | GPU 0 Stub sm_90 | CUDA 12.4 | GPU memory in use "));
  // The arena, a staging block of inputs in pieces of 256 bytes, and nothing else on the stub.
  CHECK(contains(result.output,
                 "by this program 2176: arena 1408, inputs 768, kernels and graphs 0"));
  CHECK(contains(result.output, "step 1/"));
  CHECK(contains(result.output, "arena: highest byte touched "));
}

TEST_CASE("clusters are an attribute of graph nodes and of single launches") {
  plan::Plan plan = gpu_plan();
  plan.kernels[0].launch.cluster = 2;
  const StubRun gpu(plan);
  REQUIRE(gpu.run({"--steps", "1"}).code == 0);
  CHECK(gpu.calls({"attribute"}) == Strings(kMicroBatches, "attribute forward 4 2,1,1"));
  REQUIRE(gpu.run({"--steps", "1"}, {{"SGTC_STEPWISE", "1"}}).code == 0);
  CHECK(gpu.calls({"cuLaunchKernelEx forward"}) ==
        Strings(kMicroBatches, "cuLaunchKernelEx forward 2x128 attribute 4 2,1,1"));
  CHECK(gpu.calls({"cuLaunchKernelEx update"}) == Strings{"cuLaunchKernelEx update 1x32+1024"});
}

TEST_CASE("kernels get their tensors through maps, which are encoded once for each") {
  // As the forward kernel of the regression, but it finds x through its tensor map.
  const auto through_map = [](void* const* arguments, int64_t begin, int64_t end,
                              int64_t micro_batch) {
    const auto* map = static_cast<const EncodedTensorMap*>(arguments[5]);
    void* const mapped[] = {reinterpret_cast<void*>(map->words[0]), arguments[1], arguments[2],
                            arguments[3], arguments[4]};
    if (mapped[0] == arguments[0]) regression_forward(mapped, begin, end, micro_batch);
  };
  const StubKernel kernels[] = {
      {"forward", through_map, 5, 1}, kStubKernels[1], kStubKernels[2], kStubKernels[3]};
  plan::Plan plan = gpu_plan();
  plan.kernels[0].launch.tensor_maps = {{0, 0, "f32", {kWidth, kRows}, {16}, {kWidth, kRows}}};
  const StubImage image = {kernels, 4};
  const StubRun gpu(plan);
  for (const char* stepwise : {"0", "1"}) {
    const ChildResult result =
        gpu.run(full_run(gpu.regression), {{"SGTC_STEPWISE", stepwise}}, image);
    INFO(result.errors);
    REQUIRE(result.code == 0);
    check_equal(outcome_of(gpu.folder()), cpu_outcome());
    CHECK(
        gpu.calls({"map"}) ==
        Strings(kMicroBatches, "map type 7 sizes 4,2 strides 16 box 4,2 steps 1,1 layout 0 3 3 0"));
  }
}

TEST_CASE("an indirect kernel gets the addresses of its arguments in a table") {
  const auto through_table = [](void* const* arguments, int64_t begin, int64_t end,
                                int64_t micro_batch) {
    regression_update(static_cast<void* const*>(arguments[0]), begin, end, micro_batch);
  };
  const StubKernel kernels[] = {
      kStubKernels[0], kStubKernels[1], {"update", through_table, 1}, kStubKernels[3]};
  plan::Plan plan = gpu_plan();
  plan.kernels[2].launch.indirect = true;
  const StubImage image = {kernels, 4};
  const StubRun gpu(plan);
  for (const char* stepwise : {"0", "1"}) {
    const ChildResult result =
        gpu.run(full_run(gpu.regression), {{"SGTC_STEPWISE", stepwise}}, image);
    INFO(result.errors);
    REQUIRE(result.code == 0);
    check_equal(outcome_of(gpu.folder()), cpu_outcome());
  }
}

TEST_CASE("a tensor map that the driver refuses ends the run") {
  plan::Plan plan = gpu_plan();
  plan.kernels[0].launch.tensor_maps = {{0, 8, "f32", {kWidth, kRows}, {16}, {kWidth, kRows}}};
  CHECK(contains(StubRun(plan).run({"--steps", "1"}).errors, "cuTensorMapEncodeTiled("));
}

TEST_CASE("blocks that wait for each other need room for all of them") {
  plan::Plan plan = gpu_plan();
  plan::Kernel& update = plan.kernels[2];
  update.blocks = 132;
  update.launch.resident = true;
  CHECK(StubRun(plan).run({"--dry-run"}).code == 0);
  const std::map<std::string, std::string> smaller = {{"SGTC_STUB_MULTIPROCESSORS", "114"}};
  const std::string expected =
      "error: GPU 0 (Stub): has room for 114 blocks of kernel update at once, which needs 132; "
      "the program was compiled for 132 multiprocessors, this GPU has 114; run it on a GPU of the "
      "kind that it was compiled for\n";
  CHECK(StubRun(plan).run({"--steps", "1"}, smaller).errors == expected);
  update.launch.cluster = 2;
  CHECK(StubRun(plan).run({"--steps", "1"}, smaller).errors == expected);
  update.launch.resident = false;
  CHECK(StubRun(plan).run({"--steps", "1"}, smaller).code == 0);
}

TEST_CASE("a trace has the kernels of a GPU as they tell it, and changes no bit") {
  const StubRun gpu;
  const std::string weights = gpu.folder() / "w.safetensors";
  REQUIRE(gpu.run({"--steps", "2", "--save", weights}).code == 0);
  const std::string expected = read_file(weights);
  const std::string path = gpu.folder() / "t.json";
  REQUIRE(gpu.run({"--steps", "2", "--save", weights, "--trace", path}).code == 0);
  CHECK(read_file(weights) == expected);
  CHECK(gpu.calls({"cuGraphLaunch"}).size() == 2);

  const nlohmann::json trace = nlohmann::json::parse(read_file(path));
  std::vector<nlohmann::json> kernels;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "compute") kernels.push_back(event);
  }
  REQUIRE(kernels.size() == 2 * (2 * kMicroBatches + 1));
  CHECK(kernels[0]["name"] == "forward");
  CHECK(kernels[0]["args"]["task"] == "forward_backward");
  CHECK(kernels[3]["args"]["micro_batch"] == 1);
  CHECK(kernels[2 * kMicroBatches]["name"] == "update");
  for (size_t i = 0; i < kernels.size(); ++i) {
    CHECK(kernels[i]["dur"] == 1000);  // the stub's clock
    if (i % (2 * kMicroBatches + 1) == 0) continue;
    CHECK(kernels[i]["ts"].get<double>() ==
          Approx(kernels[i - 1]["ts"].get<double>() + 1000).margin(1e-3));
  }
}

TEST_CASE("a graph for a trace differs by stamps alone") {
  const StubRun gpu;
  REQUIRE(gpu.run({"--steps", "1", "--trace", gpu.folder() / "t.json"}).code == 0);
  const Strings nodes = gpu.calls({"node"});
  const size_t plain = 2 * kMicroBatches + 2;
  const auto traced = nodes.end() - static_cast<std::ptrdiff_t>(plain + 1);
  CHECK(traced[0] == nodes[0]);
  CHECK(traced[1] == "node 1 fill 14336 after");  // the stamps of seven launches
  CHECK(traced[2] == "node 2 forward 2x128 after 0 1");
  CHECK(traced[3] == "node 3 backward 4x128 after 2");
}

TEST_CASE("a machine that a GPU program cannot run on is told so in one message") {
  const StubRun gpu;
  const auto refusal = [&](const std::map<std::string, std::string>& environment) {
    const ChildResult result = gpu.run({"--steps", "1"}, environment);
    CHECK(result.code == 1);
    CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
    return result.errors;
  };
  CHECK(contains(refusal({{"SGTC_CUDA_LIBRARY", "/nowhere/libcuda.so.1"}}),
                 "error: CUDA driver: cannot be loaded: /nowhere/libcuda.so.1"));
  CHECK(contains(refusal({{"SGTC_CUDA_LIBRARY", "libm.so.6"}}),
                 "error: CUDA driver: has no function cuInit; this program needs a driver"));
  CHECK(contains(refusal({{"SGTC_STUB_GPUS", "0"}}),
                 "error: GPU: the CUDA driver finds none; run on a machine with a GPU"));
  CHECK(contains(refusal({{"SGTC_STUB_CAPABILITY", "80"}}),
                 "error: GPU 0 (Stub): is of architecture sm_80, the program was compiled for "
                 "sm_90a"));
  CHECK(contains(refusal({{"SGTC_STUB_CAPABILITY", "100"}}), "is of architecture sm_100"));
  CHECK(contains(refusal({{"SGTC_STUB_MEMORY", "1000"}}),
                 "error: GPU 0 (Stub): the program needs 0.00 GiB of its memory, free are"));
  CHECK(contains(refusal({{"SGTC_STUB_FAIL", "cuDevicePrimaryCtxRetain=802"}}),
                 "cuDevicePrimaryCtxRetain(&gpu.context, device) failed: scripted error "
                 "(CUDA_ERROR_STUB, 802)"));
}

TEST_CASE("code that the driver cannot load is told with versions") {
  const StubRun gpu;
  const ChildResult foreign = gpu.run({"--steps", "1"}, {{"SGTC_STUB_FAIL", "load cubin=200"}});
  CHECK(contains(foreign.errors, "cuModuleLoadDataEx(cubin) failed"));
  // A cubin for another architecture leaves the PTX.
  REQUIRE(gpu.run({"--steps", "1"}, {{"SGTC_STUB_FAIL", "load cubin=0"}}).code == 0);
  CHECK(gpu.calls({"load"}) == Strings{"load cubin"});
  const auto fall_back = [](const char* text) {
    SgtcGpuImage image = kGpuImage;
    image.cubin = nullptr;
    image.ptx = text;
    return image;
  };
  const SgtcGpuImage image = fall_back(".version 8.6\n.target sm_90a\n");
  const SgtcGpuKernel kernels[] = {{"forward", &image}};
  const ChildResult result = run_child([&] {
    setenv("SGTC_CUDA_LIBRARY", SGTC_CUDA_STUB, 1);
    setenv("SGTC_STUB_FAIL", "load ptx=222", 1);
    Program program = gpu_program(gpu.regression.program());
    program.gpu_kernels = kernels;
    program.gpu_kernel_count = 1;
    return call_program(program, gpu.regression.arguments({"--steps", "1"}));
  });
  CHECK(result.code == 1);
  CHECK(result.errors ==
        "error: GPU 0 (Stub): the driver (CUDA 12.4) cannot compile the program's PTX of version "
        "8.6: scripted error (CUDA_ERROR_STUB, 222); install a newer driver, or compile the "
        "program where ptxas is found\n");
}

TEST_CASE("a kernel that fails is found, and step by step it is named") {
  const StubRun gpu;
  const std::map<std::string, std::string> fault = {{"SGTC_STUB_FAIL", "kernel backward=700@5"}};
  const ChildResult whole = gpu.run({"--steps", "4"}, fault);
  CHECK(whole.code == 1);
  CHECK(contains(whole.errors,
                 "error: GPU 0 (Stub): a kernel failed: scripted error "
                 "(CUDA_ERROR_STUB, 700); run again with SGTC_STEPWISE=1"));
  std::map<std::string, std::string> stepwise = fault;
  stepwise["SGTC_STEPWISE"] = "1";
  CHECK(contains(gpu.run({"--steps", "4"}, stepwise).errors,
                 "error: GPU 0 (Stub): kernel backward of task forward_backward failed in step 2, "
                 "micro-batch 1: scripted error"));
}

TEST_CASE("a kernel that the program lacks is named") {
  plan::Plan plan = gpu_plan();
  plan.kernels[0].symbol = "absent";
  plan.positions[0].tasks[0].calls[0].kernel = "absent";
  CHECK(contains(StubRun(plan).run({"--steps", "1"}).errors, "there is no kernel absent"));
}

TEST_CASE("kernels of a training step are measured one by one") {
  const StubRun gpu;
  const std::string profile = gpu.folder() / "profile.json";
  const ChildResult result = gpu.run({"--calibrate", profile});
  INFO(result.errors);
  REQUIRE(result.code == 0);
  const nlohmann::json found = nlohmann::json::parse(read_file(profile));
  CHECK(found["name"] == "Stub");
  CHECK(found["device"] == "gpu");
  CHECK(found["preset"] == "h200");
  CHECK(found["units"] == 132);
  CHECK(found["communications"].empty());
  REQUIRE(found["kernels"].size() == 3);  // nothing of an evaluation
  for (const char* symbol : {"forward", "backward", "update"}) {
    CHECK(found["kernels"][symbol]["seconds"] == 1e-3);  // what each takes on the stub
    CHECK(found["kernels"][symbol]["units"] == 132);
  }
}

TEST_CASE("each rank of a host takes a GPU of its own") {
  const auto ordinal = [](int64_t local_rank, const char* gpus, const char* visible) {
    const ChildResult result = run_child([&] {
      setenv("SGTC_CUDA_LIBRARY", SGTC_CUDA_STUB, 1);
      setenv("SGTC_STUB_GPUS", gpus, 1);
      setenv("CUDA_VISIBLE_DEVICES", visible, 1);
      Driver driver;
      return 10 + choose_gpu(driver, "sm_80", local_rank, 4).ordinal;
    });
    return result.code == 1 ? result.errors : std::to_string(result.code - 10);
  };
  CHECK(ordinal(0, "4", "") == "0");
  CHECK(ordinal(3, "4", "") == "3");
  CHECK(ordinal(3, "1", "2") == "0");
  CHECK(ordinal(3, "1", "") ==
        "error: GPU: 4 ranks run on this host, GPUs that are visible: 1; start no more ranks than "
        "GPUs on a host\n");
}

}  // namespace sgtc::runtime::cuda
