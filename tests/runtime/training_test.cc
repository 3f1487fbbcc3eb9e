#include "runtime/training.h"

#include <malloc.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/regression_data.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::vector<float> weights_in(const std::string& path) {
  SafetensorsFile file;
  REQUIRE_FALSE(file.open(path));
  const TensorView& tensor = file.tensors().at("w");
  const float* values = reinterpret_cast<const float*>(tensor.data);
  return {values, values + kWidth};
}

}  // namespace

TEST_CASE("training lowers the loss and saves the weights") {
  const RegressionRun run;
  const ChildResult result = run.run({"--steps", "200", "--lr", "0.1", "--log", run.folder / "log",
                                      "--save", run.folder / "w.safetensors"});
  INFO(result.errors);
  REQUIRE(result.code == 0);
  const auto losses = log_values(run.folder / "log", "loss");
  REQUIRE(losses.size() == 200);
  CHECK(losses.back().get<double>() < 0.05 * losses.front().get<double>());
  CHECK(result.output.find("step 1/200 | loss ") == 0);
  CHECK(weights_in(run.folder / "w.safetensors")[0] == Approx(1).margin(0.3));
  SafetensorsFile file;
  REQUIRE_FALSE(file.open(run.folder / "w.safetensors"));
  CHECK(file.tensors().size() == 2);
  float updates;
  std::memcpy(&updates, file.tensors().at("updates").data, 4);
  CHECK(updates == 210);
}

TEST_CASE("the loss does not depend on the number of threads") {
  const RegressionRun run;
  std::vector<std::vector<nlohmann::json>> losses;
  for (const char* threads : {"1", "2", "3"}) {
    REQUIRE(run.run({"--steps", "20", "--threads", threads, "--log", run.folder / "log"}).code ==
            0);
    losses.push_back(log_values(run.folder / "log", "loss"));
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] == losses[2]);
}

TEST_CASE("seeds change initial values and the order of samples") {
  const RegressionRun run(60);
  const auto first_losses = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all = {"--steps", "12", "--log", run.folder / "log", "--quiet"};
    all.insert(all.end(), options.begin(), options.end());
    REQUIRE(run.run(all).code == 0);
    return log_values(run.folder / "log", "loss");
  };
  const auto plain = first_losses({});
  CHECK(first_losses({}) == plain);
  CHECK(first_losses({"--seed", "1"}) != plain);
  const auto shuffled = first_losses({"--shuffle"});
  CHECK(shuffled != plain);
  CHECK(first_losses({"--shuffle"}) == shuffled);
}

TEST_CASE("left-over rows are dropped with a note, and too few are an error") {
  const RegressionRun run(14);
  const ChildResult dropped = run.run({"--steps", "5", "--quiet"});
  CHECK(dropped.code == 0);
  CHECK(dropped.output ==
        "note: the last 2 of 14 samples do not fill a step of 6 and are dropped in each epoch "
        "(--last-batch=drop)\n");
  const ChildResult padded = run.run({"--steps", "5", "--last-batch", "pad"});
  CHECK(padded.code == 1);
  CHECK(padded.errors.find("the rows of this program have no weights") != std::string::npos);
  const RegressionRun few(5);
  const ChildResult result = few.run({"--steps", "5"});
  CHECK(result.code == 1);
  CHECK(result.output.empty());
  CHECK(result.errors ==
        "error: data: has 5 samples, a step takes 6; give more data, compile with a smaller "
        "batch, fewer micro-batches or replicas, or pad with --last-batch=pad\n");
}

TEST_CASE("evaluation covers all rows of whole micro-batches") {
  RegressionRun run;
  run.write_samples("eval_", 9);
  const ChildResult result =
      run.run({"--steps", "4", "--eval", "x=" + run.folder / "eval_x.npy", "--eval",
               "y=" + run.folder / "eval_y.npy", "--eval-every", "2", "--predict",
               "prediction=" + run.folder / "p.npy", "--log", run.folder / "log"});
  INFO(result.errors);
  REQUIRE(result.code == 0);
  CHECK(result.output.find("the last 1 of 9 evaluation samples") != std::string::npos);
  CHECK(result.output.find("eval step 2 | loss ") != std::string::npos);
  const auto losses = log_values(run.folder / "log", "eval_loss");
  REQUIRE(losses.size() == 2);

  const std::string text = read_file(run.folder / "p.npy");
  NpyHeader header;
  REQUIRE_FALSE(parse_npy("p", reinterpret_cast<const unsigned char*>(text.data()),
                          static_cast<int64_t>(text.size()), header));
  CHECK(header.shape == std::vector<int64_t>{9});
  const std::string targets = read_file(run.folder / "eval_y.npy");
  double sum = 0;
  for (int64_t i = 0; i < 8; ++i) {
    float prediction;
    float target;
    std::memcpy(&prediction, text.data() + header.data_offset + i * 4, 4);
    std::memcpy(&target, targets.data() + targets.size() - 36 + i * 4, 4);
    sum += (prediction - target) * (prediction - target);
  }
  CHECK(losses.back().get<double>() == Approx(sum / 8).epsilon(1e-5));
}

TEST_CASE("a run can evaluate without training") {
  RegressionRun run;
  const ChildResult result = run_child_program(
      run.program(),
      {"--eval", "x=" + run.folder / "x.npy", "--eval", "y=" + run.folder / "y.npy"});
  CHECK(result.code == 0);
  CHECK(result.output.find("eval step 0 | loss ") == 0);
}

TEST_CASE("a step that is not finite is skipped and counted, or ends the run") {
  const RegressionRun run;
  std::vector<float> y(24, 1.0F);
  y[7] = std::numeric_limits<float>::infinity();
  write_npy(run.folder / "y.npy", "f32", {24}, y);
  const ChildResult skipped = run.run({"--steps", "4", "--log", run.folder / "log"});
  CHECK(skipped.code == 0);
  CHECK(skipped.output.find("1 of 4 steps were skipped") != std::string::npos);
  CHECK(log_values(run.folder / "log", "skipped") ==
        std::vector<nlohmann::json>{false, true, false, false});
  CHECK(log_values(run.folder / "log", "loss")[1] == "Infinity");
  CHECK(log_values(run.folder / "log", "loss")[2].is_number());
  const ChildResult stopped = run.run({"--steps", "4", "--on-nan", "stop"});
  CHECK(stopped.code == 1);
  CHECK(stopped.errors.find("error: step 2: loss or gradient is not finite") == 0);
}

TEST_CASE("an index out of range names its node") {
  const RegressionRun run;
  write_npy(run.folder / "x.npy", "f32", {24, kWidth}, std::vector<float>(24 * kWidth, 1e30F));
  const ChildResult result = run.run({"--steps", "4"});
  CHECK(result.code == 1);
  CHECK(result.errors ==
        "error: node dot: index 7 is out of range for extent 5; check the index data that is "
        "fed\n");
}

TEST_CASE("initial values come from a file, checked by name and shape") {
  const RegressionRun run;
  REQUIRE(run.run({"--steps", "3", "--save", run.folder / "a.safetensors"}).code == 0);
  REQUIRE(run.run({"--steps", "0", "--init", run.folder / "a.safetensors", "--save",
                   run.folder / "b.safetensors"})
              .code == 0);
  CHECK(read_file(run.folder / "a.safetensors") == read_file(run.folder / "b.safetensors"));

  const float half[3] = {1, 2, 3};
  DurableFile file;
  REQUIRE_FALSE(file.create(run.folder / "c.safetensors"));
  REQUIRE_FALSE(write_safetensors(
      file, {{"w", {"f32", {3}, reinterpret_cast<const unsigned char*>(half), 12}}}));
  REQUIRE_FALSE(file.finish());
  const ChildResult shape = run.run({"--steps", "0", "--init", run.folder / "c.safetensors"});
  CHECK(shape.code == 1);
  CHECK(shape.errors.find("tensor w: expected f32 [4], found f32 [3]") != std::string::npos);
}

TEST_CASE("a dry run checks everything, runs one step and writes nothing") {
  const RegressionRun run;
  setenv("SGTC_POISON", "1", 1);
  const ChildResult result = run.run({"--dry-run", "--checkpoint", run.folder / "checkpoints",
                                      "--save", run.folder / "w.safetensors"});
  unsetenv("SGTC_POISON");
  INFO(result.errors);
  CHECK(result.code == 0);
  CHECK(result.output.find("rank 0 of 1 | local rank 0 of 1 | host ") == 0);
  CHECK(result.output.find("step 1/") != std::string::npos);
  CHECK(result.output.find("arena: highest byte touched ") != std::string::npos);
  CHECK(list_folder(run.folder.path()) == std::vector<std::string>{"x.npy", "y.npy"});
}

TEST_CASE("information is printed without a run") {
  const RegressionRun run;
  CHECK(run_child_program(run.program(), {"--print-plan"}).output == run.program().plans);
  CHECK(run_child_program(run.program(), {"--version"}).output.find("sgtc test, program 0123") ==
        0);
  CHECK(run_child_program(run.program(), {"--help"}).output.find("usage: ./train") == 0);
}

TEST_CASE("mistakes end the run before its first step") {
  const RegressionRun run;
  const auto refusal = [&](const std::vector<std::string>& options, int code) {
    const ChildResult result = run.run(options);
    CHECK(result.code == code);
    CHECK(result.output.find("step 1/") == std::string::npos);
    return result.errors;
  };
  CHECK(refusal({}, 2) == "error: --steps: is missing; give the number of steps, --steps N\n");
  CHECK(refusal({"--steps", "1", "--save-every", "1"}, 2).find("add --checkpoint DIR") !=
        std::string::npos);
  CHECK(refusal({"--steps", "1", "--resume", "auto"}, 2).find("add --checkpoint DIR") !=
        std::string::npos);
  CHECK(refusal({"--steps", "1", "--save", "/nowhere/w.safetensors"}, 1) ==
        "error: /nowhere/w.safetensors: cannot create: No such file or directory\n");
  CHECK(refusal({"--steps", "1", "--log", "/nowhere/log"}, 1).find("/nowhere/log: cannot be") !=
        std::string::npos);
  CHECK(refusal({"--steps", "1", "--predict", "z=" + run.folder / "p.npy"}, 1) ==
        "error: --predict z: the program has no such output; its outputs are: prediction\n");
  plan::Plan plan = regression_plan();
  plan.cpu_features.push_back("avx9000");
  CHECK(RegressionRun(24, plan).run({"--steps", "1"}).errors.find("lacks avx9000") !=
        std::string::npos);
}

TEST_CASE("a trace has an event for each entry of the schedule") {
  const RegressionRun run;
  REQUIRE(run.run({"--steps", "2", "--trace", run.folder / "t.json"}).code == 0);
  const auto trace = nlohmann::json::parse(read_file(run.folder / "t.json"));
  CHECK(trace["traceEvents"].size() == 2 * (kMicroBatches + 1) + 2 + 3);  // names, two steps
  CHECK(trace["traceEvents"][0]["args"]["name"] == "rank 0");
  CHECK(trace["traceEvents"][1]["name"] == "forward_backward");
}

}  // namespace sgtc::runtime
