#include "runtime/checkpoint.h"

#include "runtime/regression_data.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// Options of a run with checkpoints in folder "c" and a log "log".
std::vector<std::string> options(const RegressionRun& run, const std::string& steps,
                                 const std::vector<std::string>& more) {
  std::vector<std::string> all = {
      "--steps", steps,          "--lr",           "0.05",  "--shuffle",
      "--quiet", "--checkpoint", run.folder / "c", "--log", run.folder / "log"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The final weights of a run of 9 steps without interruption.
std::string undisturbed_weights(const std::string& seed) {
  const RegressionRun run(32);
  REQUIRE(run.run(options(run, "9", {"--seed", seed, "--save", run.folder / "w"})).code == 0);
  return read_file(run.folder / "w");
}

}  // namespace

TEST_CASE("a run resumed after any step ends with the same bits") {
  const std::string expected = undisturbed_weights("5");
  for (const char* stop : {"1", "4", "5", "6", "8"}) {
    const RegressionRun run(32);
    REQUIRE(run.run(options(run, stop, {"--seed", "5"})).code == 0);
    const ChildResult resumed =
        run.run(options(run, "9", {"--resume", "auto", "--save", run.folder / "w"}));
    INFO(resumed.errors);
    REQUIRE(resumed.code == 0);
    CHECK(read_file(run.folder / "w") == expected);
    const auto steps = log_values(run.folder / "log", "step");
    REQUIRE(steps.size() == 9);
    for (size_t i = 0; i < 9; ++i) CHECK(steps[i] == i + 1);
  }
}

TEST_CASE("only the newest checkpoints are kept") {
  const RegressionRun run;
  REQUIRE(run.run(options(run, "7", {"--save-every", "2"})).code == 0);
  CHECK(list_folder(run.folder / "c") == std::vector<std::string>{"step_0000006", "step_0000007"});
  const RegressionRun more;
  REQUIRE(more.run(options(more, "7", {"--save-every", "2", "--keep", "3"})).code == 0);
  CHECK(list_folder(more.folder / "c").size() == 3);
  CHECK(list_folder(more.folder / "c/step_0000004") ==
        std::vector<std::string>{"manifest.json", "model.safetensors", "optimizer.safetensors",
                                 "state.json"});
}

TEST_CASE("a crash at any write, sync or rename keeps the newest committed checkpoint") {
  const std::string expected = undisturbed_weights("0");
  int crashes = 0;
  for (int at = 1; at < 200; ++at) {
    const RegressionRun run(32);
    REQUIRE(run.run(options(run, "3", {})).code == 0);
    setenv("SGTC_CRASH_AT", std::to_string(at).c_str(), 1);
    const ChildResult crashed =
        run.run(options(run, "6", {"--save-every", "3", "--resume", "auto", "--keep", "1"}));
    unsetenv("SGTC_CRASH_AT");
    if (crashed.code == 0) break;
    ++crashes;
    REQUIRE(crashed.signal == SIGKILL);
    const ChildResult resumed =
        run.run(options(run, "9", {"--resume", "auto", "--save", run.folder / "w"}));
    INFO(at << ": " << resumed.errors);
    REQUIRE(resumed.code == 0);
    CHECK(resumed.errors.empty());
    CHECK(resumed.output.find("resuming from ") != std::string::npos);
    CHECK(read_file(run.folder / "w") == expected);
  }
  CHECK(crashes >= 11);  // four files written and synced, the folder, the rename, the parent
}

TEST_CASE("a broken checkpoint is passed over for an older one, with a warning") {
  const RegressionRun run(32);
  REQUIRE(run.run(options(run, "4", {"--save-every", "2"})).code == 0);
  const std::string model = run.folder / "c/step_0000004/model.safetensors";
  std::string contents = read_file(model);
  contents.back() ^= 1;
  write_file(model, contents);
  const ChildResult resumed = run.run(options(run, "4", {"--resume", "auto"}));
  CHECK(resumed.code == 0);
  CHECK(resumed.output.find("step_0000002") != std::string::npos);
  CHECK(resumed.errors.find("the checkpoint is broken") != std::string::npos);
  Checkpoint checkpoint;
  CHECK_FALSE(open_checkpoint(run.folder / "c/step_0000004", checkpoint));
}

TEST_CASE("only broken checkpoints are refused by name; none at all is a fresh start") {
  const RegressionRun run(32);
  CHECK(run.run(options(run, "2", {"--resume", "auto"})).code == 0);
  for (const std::string& name : list_folder(run.folder / "c")) {
    write_file(run.folder / ("c/" + name + "/manifest.json"), "{}");
  }
  const ChildResult refused = run.run(options(run, "4", {"--resume", "auto"}));
  CHECK(refused.code == 1);
  CHECK(refused.errors.find("all checkpoints are broken: step_0000002") != std::string::npos);
  const ChildResult none = run.run(options(run, "4", {"--resume", run.folder / "empty"}));
  CHECK(none.code == 1);
  CHECK(none.errors.find("holds no checkpoint") != std::string::npos);
}

TEST_CASE("a folder with checkpoints of another run or model is not touched") {
  const RegressionRun run(32);
  REQUIRE(run.run(options(run, "2", {})).code == 0);
  const ChildResult fresh = run.run(options(run, "4", {}));
  CHECK(fresh.code == 1);
  CHECK(fresh.errors.find("holds checkpoints up to step 2 of an earlier run; go on with --resume "
                          "auto") != std::string::npos);
  plan::Plan plan = regression_plan();
  plan.model_fingerprint = "model-b";
  const RegressionRun other(32, plan);
  const ChildResult refused = other.run(options(run, "4", {"--resume", "auto"}));
  CHECK(refused.code == 1);
  CHECK(refused.errors.find("belongs to another model: fingerprint model-a, expected model-b") !=
        std::string::npos);
}

TEST_CASE("a step folder can be resumed from by its name") {
  const RegressionRun run(32);
  REQUIRE(run.run(options(run, "4", {"--save-every", "2"})).code == 0);
  const ChildResult blocked =
      run.run(options(run, "6", {"--resume", run.folder / "c/step_0000002/"}));
  CHECK(blocked.code == 1);
  CHECK(blocked.errors.find("also holds step 4") != std::string::npos);
  const ChildResult resumed = run.run({"--steps", "6", "--resume", run.folder / "c/step_0000002/",
                                       "--checkpoint", run.folder / "d"});
  CHECK(resumed.code == 0);
  CHECK(resumed.output.find("step 3/6") != std::string::npos);
}

TEST_CASE("a signal stops after the step, with a checkpoint") {
  const RegressionRun run(32);
  const TemporaryFolder output;
  const pid_t child = start_child(output, [&] {
    return call_program(run.program(),
                        run.arguments({"--steps", "1000000000", "--quiet", "--checkpoint",
                                       run.folder / "c", "--log", run.folder / "log"}));
  });
  while (log_values(run.folder / "log", "step").size() < 5) usleep(1000);
  kill(child, SIGTERM);
  const ChildResult stopped = wait_for_child(output, child);
  CHECK(stopped.code == 143);
  REQUIRE(list_folder(run.folder / "c").size() == 1);
  const auto steps = log_values(run.folder / "log", "step");
  CHECK(newest_step(run.folder / "c") == static_cast<int64_t>(steps.size()));
}

}  // namespace sgtc::runtime
