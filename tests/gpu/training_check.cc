// Trains the regression program on a GPU through the whole runtime and compares it, bit for bit,
// with the same program on the CPU; then measures what a step costs the host.
//
//   gpu_training_check FOLDER   with regression.ptx, and regression.cubin if there is one
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "runtime/device.h"
#include "runtime/regression_data.h"
#include "runtime/session.h"

namespace sgtc::runtime {
namespace {

constexpr int kSkipped = 77;

using Strings = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

// The kernels of one image.
struct GpuCode {
  std::string cubin, ptx;
  SgtcGpuImage image = {};
  std::vector<SgtcGpuKernel> kernels;

  GpuCode(std::string cubin_text, std::string ptx_text)
      : cubin(std::move(cubin_text)), ptx(std::move(ptx_text)) {
    if (!cubin.empty()) image.cubin = reinterpret_cast<const unsigned char*>(cubin.data());
    image.ptx = ptx.c_str();
    for (const char* symbol : {"forward", "backward", "update", "evaluate", "faulty"}) {
      kernels.push_back({symbol, &image});
    }
  }
  Program apply(Program program) const {
    program.gpu_kernels = kernels.data();
    program.gpu_kernel_count = static_cast<int64_t>(kernels.size());
    return program;
  }
};

plan::Plan gpu_plan() {
  plan::Plan plan = regression_plan();
  plan.target = "sm_90a";
  plan.kernels.push_back(kernel_of("faulty", 1));
  plan.multiprocessors = 132;
  for (plan::Kernel& kernel : plan.kernels) kernel.launch.threads = 32;
  return plan;
}

int failures = 0;

void expect(bool holds, const std::string& what) {
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
  if (!holds) ++failures;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ChildResult run(const RegressionRun& run, const Program& program, const Strings& arguments,
                const Environment& environment = {}) {
  ChildResult result = run_child([&] {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    return call_program(program, run.arguments(arguments));
  });
  if (result.code != 0) std::printf("     %s", result.errors.c_str());
  return result;
}

// Everything that a run leaves behind, as one text.
std::string outcome(const RegressionRun& data, const Program& program,
                    const Environment& environment = {}) {
  const TemporaryFolder& folder = data.folder;
  const Strings arguments = {"--steps",
                             "50",
                             "--lr",
                             "0.1",
                             "--shuffle",
                             "--log",
                             folder / "log",
                             "--save",
                             folder / "w.safetensors",
                             "--eval",
                             "x=" + folder / "x.npy",
                             "--eval",
                             "y=" + folder / "y.npy",
                             "--eval-every",
                             "10",
                             "--predict",
                             "prediction=" + folder / "p.npy"};
  if (run(data, program, arguments, environment).code != 0) return "";
  std::string text = read_file(folder / "w.safetensors") + read_file(folder / "p.npy");
  for (const char* key : {"loss", "grad_norm", "eval_loss"}) {
    for (const nlohmann::json& value : log_values(folder / "log", key)) text += value.dump() + " ";
  }
  return text;
}

void compare_runs(const GpuCode& code, const GpuCode& ptx_only) {
  const RegressionRun cpu;
  const RegressionRun gpu(24, gpu_plan());
  const std::string expected = outcome(cpu, cpu.program());
  expect(!expected.empty(), "the CPU trains");
  expect(outcome(gpu, code.apply(gpu.program()), {{"SGTC_POISON", "1"}}) == expected,
         "training, evaluation and prediction are those of the CPU, bit for bit");
  expect(outcome(gpu, ptx_only.apply(gpu.program())) == expected, "and so from PTX");
  expect(outcome(gpu, code.apply(gpu.program()), {{"SGTC_STEPWISE", "1"}}) == expected,
         "and so one kernel at a time");
}

void check_resume(const GpuCode& code) {
  const RegressionRun gpu(24, gpu_plan());
  const Program program = code.apply(gpu.program());
  const std::string weights = gpu.folder / "w.safetensors";
  const auto train = [&](const char* steps, const Strings& more) {
    Strings all = {"--steps", steps, "--save", weights};
    all.insert(all.end(), more.begin(), more.end());
    return run(gpu, program, all).code == 0 ? read_file(weights) : "failed";
  };
  const std::string expected = train("40", {});
  const Strings checkpoint = {"--checkpoint", gpu.folder / "c", "--save-every", "7", "--resume",
                              "auto"};
  const bool first = train("23", checkpoint) != expected;
  expect(first && train("40", checkpoint) == expected, "a resumed run has the same bits");
}

void check_messages(const GpuCode& code) {
  plan::Plan plan = gpu_plan();
  const RegressionRun data(24, plan);
  write_npy(data.folder / "x.npy", "f32", {24, kWidth}, std::vector<float>(24 * kWidth, 1e30F));
  expect(contains(run(data, code.apply(data.program()), {"--steps", "5"}).errors,
                  "error: node dot: index 7 is out of range for extent 5"),
         "a bad index names its node");

  plan::Call call;
  call.kernel = "faulty";
  call.arguments = {{"w", {}, 0}};
  plan.positions[0].tasks[1].calls.push_back(call);
  const RegressionRun faulty(24, plan);
  const Program program = code.apply(faulty.program());
  expect(contains(run(faulty, program, {"--steps", "5"}).errors, "a kernel failed: an illegal"),
         "a kernel that faults ends the run");
  expect(contains(run(faulty, program, {"--steps", "5"}, {{"SGTC_STEPWISE", "1"}}).errors,
                  "kernel faulty of task update failed in step 1"),
         "and is named step by step");

  const RegressionRun foreign(24, gpu_plan());
  GpuCode broken("", ".version 99.9\n.target sm_90a\n.address_size 64\n");
  expect(contains(run(foreign, broken.apply(foreign.program()), {"--steps", "1"}).errors,
                  "cannot compile the program's PTX of version 99.9"),
         "PTX that is too new is told with its version");
  plan = gpu_plan();
  plan.positions[0].arena_bytes = int64_t{1} << 40;
  const RegressionRun large(24, plan);
  expect(contains(run(large, code.apply(large.program()), {"--steps", "1"}).errors,
                  "the program needs 1024.00 GiB of its memory, free are"),
         "too little memory is told with what is free");
}

void show_dry_run(const GpuCode& code) {
  const RegressionRun gpu(24, gpu_plan());
  const ChildResult result = run(gpu, code.apply(gpu.program()), {"--dry-run"});
  expect(result.code == 0 && contains(result.output, "| GPU 0 "), "a dry run tells about the GPU");
  std::printf("%s", result.output.c_str());
}

// A step of `kernels` kernels, one after another.
plan::Plan long_plan(int64_t kernels) {
  plan::Plan plan = gpu_plan();
  std::vector<plan::Entry>& entries = plan.positions[0].schedules["train"];
  entries.clear();
  for (int64_t i = 0; i < (kernels - 1) / 2; ++i) {
    entries.push_back(entry_of("forward_backward", i % kMicroBatches));
  }
  entries.push_back(entry_of("update"));
  return plan;
}

// Prints times; the result is the exit code of a process.
int measure_steps(const GpuCode& code, int64_t kernels) {
  constexpr int64_t kSteps = 400;
  const plan::Plan plan = long_plan(kernels);
  std::string text;
  const Program program = code.apply(regression_program({plan}, text));
  Session session(program, plan, {});
  session.initialize_states(Weights(program), 0);
  session.upload_states();
  std::vector<int64_t> starts;
  const int64_t begin = monotonic_nanoseconds();
  for (int64_t step = 1; step <= kSteps; ++step) {
    session.device().await_inputs();
    const int64_t before = monotonic_nanoseconds();
    session.start_step({0.1, 0, step});
    starts.push_back(monotonic_nanoseconds() - before);
    if (step > 1) session.finish_step();
  }
  session.finish_step();
  const double per_step = static_cast<double>(monotonic_nanoseconds() - begin) * 1e-3 / kSteps;
  std::sort(starts.begin(), starts.end());
  const double median = static_cast<double>(starts[kSteps / 2]) * 1e-3;
  const double late = static_cast<double>(starts[kSteps * 9 / 10]) * 1e-3;
  std::printf("%ld kernels: a step takes the host %.1f us (p90 %.1f), the GPU %.1f us\n",
              static_cast<long>(kernels), median, late, per_step);
  return median < 100 ? 0 : 1;
}

void measure(const GpuCode& code, int64_t kernels) {
  const ChildResult result = run_child([&] { return measure_steps(code, kernels); });
  std::printf("     %s%s", result.output.c_str(), result.errors.c_str());
  expect(result.code == 0, "a step takes the host less than 100 us");
}

int check(const std::string& folder) {
  const std::string ptx = read_file(folder + "/regression.ptx");
  const GpuCode code(read_file(folder + "/regression.cubin"), ptx);
  const GpuCode ptx_only("", ptx);
  compare_runs(code, ptx_only);
  check_resume(code);
  check_messages(code);
  show_dry_run(code);
  for (const int64_t kernels : {7, 401, 2001}) measure(code, kernels);
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

// A driver that finds a Hopper GPU.
bool has_gpu(const std::string& folder) {
  const RegressionRun gpu(24, gpu_plan());
  const GpuCode code(read_file(folder + "/regression.cubin"),
                     read_file(folder + "/regression.ptx"));
  const ChildResult result = run(gpu, code.apply(gpu.program()), {"--dry-run"});
  return !contains(result.errors, "error: CUDA driver: cannot be loaded") &&
         !contains(result.errors, "error: GPU: the CUDA driver finds none") &&
         !contains(result.errors, "is of architecture");
}

}  // namespace
}  // namespace sgtc::runtime

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  if (!sgtc::runtime::has_gpu(arguments[1])) {
    std::printf("skipped: no Hopper GPU\n");
    return sgtc::runtime::kSkipped;
  }
  return sgtc::runtime::check(arguments[1]);
}
