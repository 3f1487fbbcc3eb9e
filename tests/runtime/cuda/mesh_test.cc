// Runs of two ranks with a GPU each, over the stubs of driver and NCCL: what they compute, what
// they ask of NCCL, and how they end when something goes wrong.
#include "runtime/cuda/mesh_run.h"
#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

using Strings = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

// Losses and weights of a run that has succeeded.
struct Outcome {
  std::vector<nlohmann::json> losses, norms, eval_losses;
  std::string weights;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(MeshRun& run, const Settings& settings = {}) {
  const std::string log = run.folder() / "log";
  const std::string weights = run.folder() / "w.safetensors";
  std::remove(log.c_str());
  for (const ChildResult& result :
       run.run({"--steps", "6", "--lr", "0.1", "--log", log, "--save", weights, "--eval",
                "x=" + run.folder() / "x.npy", "--eval", "y=" + run.folder() / "y.npy",
                "--eval-every", "4"},
               settings)) {
    INFO(result.errors);
    REQUIRE(result.code == 0);
  }
  return {log_values(log, "loss"), log_values(log, "grad_norm"), log_values(log, "eval_loss"),
          read_file(weights)};
}

void check_as_on_cpus(const plan::Plan& on_cpus, const plan::Plan& on_gpus) {
  MeshRun cpus(on_cpus);
  const Outcome expected = outcome_of(cpus);
  REQUIRE(expected.losses.size() == 6);
  CHECK(expected.losses.front() > expected.losses.back());
  MeshRun gpus(on_gpus);
  CHECK(outcome_of(gpus, {{"SGTC_POISON", "1"}}) == expected);
  CHECK(outcome_of(gpus, {{"SGTC_STEPWISE", "1"}}) == expected);
  CHECK(outcome_of(gpus, {{"SGTC_STUB_POLLS", "3"}}) == expected);
  CHECK(outcome_of(gpus, {{"SGTC_COPY_ENGINE", "0"}}) == expected);
}

}  // namespace

TEST_CASE("replicas on GPUs train and evaluate as on CPUs") {
  check_as_on_cpus(replicas(regression_plan()), replicas(gpu_plan()));
}

TEST_CASE("a pipeline of GPUs trains and evaluates as one of CPUs") {
  check_as_on_cpus(pipeline(regression_plan()), pipeline(gpu_plan()));
}

TEST_CASE("communications are nodes of the graph that follow what they wait for") {
  MeshRun run(replicas(gpu_plan()));
  REQUIRE(run.run({"--steps", "1"})[0].code == 0);
  Strings nodes = run.calls(0, {"node"});
  nodes.resize(9);
  CHECK(nodes == Strings{"node 0 clear 132 after", "node 1 forward 2x128 after 0",
                         "node 2 backward 4x128 after 1", "node 3 forward 2x128 after 2",
                         "node 4 backward 4x128 after 3", "node 5 forward 2x128 after 4",
                         "node 6 backward 4x128 after 5",
                         "node 7 ncclAllReduce:4+ncclAllReduce:1 after 6",
                         "node 8 update 1x32+1024 after 6 7"});
}

TEST_CASE("communications of a rank follow each other, whatever their communicator") {
  MeshRun run(pipeline(gpu_plan()));
  REQUIRE(run.run({"--steps", "1"}, {{"SGTC_COPY_ENGINE", "0"}})[0].code == 0);
  Strings nodes = run.calls(0, {"node"});
  nodes.resize(9);
  CHECK(nodes == Strings{"node 0 clear 132 after", "node 1 forward 2x128 after 0",
                         "node 2 ncclSend:8 after 1", "node 3 forward 2x128 after 1 2",
                         "node 4 ncclSend:8 after 2 3", "node 5 forward 2x128 after 3 4",
                         "node 6 ncclSend:8 after 4 5", "node 7 ncclRecv:16+ncclRecv:4 after 6",
                         "node 8 update 1x32+1024 after 5 7"});
}

TEST_CASE("communicators are made in the plan's order, as the plan wants them") {
  MeshRun run(pipeline(gpu_plan()));
  REQUIRE(run.run({"--dry-run"}, {{"SGTC_COPY_ENGINE", "0"}})[1].code == 0);
  const std::string connected = "ncclCommInitRankConfig 1 of 2 blocks 4 to 4 cluster 0 blocking 0";
  CHECK(run.calls(1, {"ncclCommInitRankConfig", "ncclCommRegister", "ncclMemAlloc"}) ==
        Strings{"ncclMemAlloc 1408", "ncclMemAlloc 32", connected, "ncclCommRegister 1408",
                connected, "ncclCommRegister 1408"});
  CHECK(run.calls(0, {"ncclGetUniqueId"}).size() == 2);
  CHECK(run.calls(1, {"ncclGetUniqueId"}).empty());
  // Each communication runs once before it is captured, in the order of the schedule.
  const Strings calls = run.calls(1, {"ncclSend", "ncclRecv", "cuStreamBeginCapture"});
  const Strings warm(calls.begin(), calls.begin() + 5);
  CHECK(warm == Strings{"ncclRecv 8", "ncclRecv 8", "ncclRecv 8", "ncclSend 16", "ncclSend 4"});
  CHECK(calls[5] == "cuStreamBeginCapture_v2 2");
}

TEST_CASE("copy engines transfer when both ends are ready") {
  MeshRun run(pipeline(gpu_plan()));
  REQUIRE(run.run({"--steps", "1"})[0].code == 0);
  const auto communications = [&](int64_t rank) {
    Strings nodes = run.calls(rank, {"node"});
    nodes.erase(nodes.begin() + 9, nodes.end());
    nodes.erase(
        std::remove_if(nodes.begin(), nodes.end(),
                       [](const std::string& node) { return node.find(":") == std::string::npos; }),
        nodes.end());
    return nodes;
  };
  CHECK(communications(0) == Strings{"node 2 wait:1+write:0 copy:8 write:1 after 1",
                                     "node 4 wait:1+write:0 copy:8 write:1 after 2 3",
                                     "node 6 wait:1+write:0 copy:8 write:1 after 4 5",
                                     "node 7 write:1+wait:1+write:0 after 6"});
  CHECK(communications(1) == Strings{"node 1 write:1+wait:1+write:0 after 0",
                                     "node 3 write:1+wait:1+write:0 after 1 2",
                                     "node 5 write:1+wait:1+write:0 after 3 4",
                                     "node 7 wait:1+write:0 copy:16 copy:4 write:1 after 5 6"});
  CHECK(run.calls(0, {"ncclCommInitRankConfig", "ncclSend", "ncclRecv"}).empty());
}

TEST_CASE("ranks whose memory cannot be shared transfer by NCCL") {
  MeshRun run(pipeline(gpu_plan()));
  const Outcome expected = outcome_of(run);
  CHECK(run.calls(0, {"ncclSend"}).empty());
  for (const char* failing :
       {"cuMemRetainAllocationHandle=801", "cuMemExportToShareableHandle=801",
        "cuMemImportFromShareableHandle=801@2", "cuMemMap=801", "cuMemSetAccess=101"}) {
    CAPTURE(failing);
    CHECK(outcome_of(run, {{"SGTC_STUB_FAIL", failing}}) == expected);
    CHECK_FALSE(run.calls(0, {"ncclSend"}).empty());
  }
  // One rank alone does not want to.
  run.start_apart({"--steps", "2"}, {}, {{"SGTC_COPY_ENGINE", "0"}});
  REQUIRE(run.end(0).code == 0);
  REQUIRE(run.end(1).code == 0);
  CHECK_FALSE(run.calls(0, {"ncclSend"}).empty());
}

TEST_CASE("a GPU that can is told to show what was written before the flag") {
  MeshRun run(pipeline(gpu_plan()));
  const Outcome expected = outcome_of(run);
  CHECK(run.calls(0, {"flushes"}).empty());
  CHECK(outcome_of(run, {{"SGTC_STUB_FLUSHES", "1"}}) == expected);
  CHECK_FALSE(run.calls(0, {"flushes"}).empty());
}

TEST_CASE("ranks of a pipeline may share a GPU if they are told to") {
  MeshRun run(pipeline(gpu_plan()));
  const Outcome expected = outcome_of(run);
  CHECK(outcome_of(run, {{"SGTC_STUB_GPUS", "1"},
                         {"CUDA_VISIBLE_DEVICES", "0"},
                         {"SGTC_SHARE_GPU", "1"}}) == expected);
}

TEST_CASE("a dry run tells about NCCL") {
  MeshRun run(replicas(gpu_plan()));
  const ChildResult result = run.run({"--dry-run"})[0];
  INFO(result.output);
  CHECK(contains(result.output, "GPU 0 Stub sm_90"));
  CHECK(contains(result.output, "GPU 1 Stub sm_90"));
  CHECK(contains(result.output, ", communicators 0 | NCCL 2.28.9"));
}

TEST_CASE("a dry run tells between which ranks copy engines transfer") {
  MeshRun run(pipeline(gpu_plan()));
  const ChildResult result = run.run({"--dry-run"})[0];
  INFO(result.output);
  CHECK(contains(result.output, "GPU 0 Stub sm_90"));
  CHECK(contains(result.output, " | NCCL 2.28.9 | copy engines to rank 1\n"));
}

TEST_CASE("a trace of GPUs has kernels and communications of one graph") {
  MeshRun run(replicas(gpu_plan()));
  const std::string path = run.folder() / "t.json";
  const ChildResult result = run.run({"--steps", "3", "--trace", path})[0];
  INFO(result.errors);
  REQUIRE(result.code == 0);
  Strings nodes = run.calls(0, {"node"});
  nodes.erase(nodes.begin(), nodes.end() - 11);
  CHECK(nodes[0] == "node 0 clear 132 after");
  CHECK(nodes[8] == "node 8 ncclAllReduce:4+ncclAllReduce:1 after 7");
  CHECK(nodes[9] == "node 9 mark 1x32 after 8");
  CHECK(nodes[10] == "node 10 update 1x32+1024 after 7 9");
  // Six kernels, a reduction that the update waits for, and the update, a millisecond each.
  CHECK(contains(result.output,
                 "communication: under way for 1.000 ms of a step of 8.000 ms, 0.0% of that beside "
                 "kernels; exposed 1.000 ms, 12.50% of the step (rank 0, the most; means of 2 "
                 "steps)\n"
                 "communication: starts within the step vary by at most 0.0 us (standard "
                 "deviation; reduce of micro-batch 0, rank 0)\n"));
  const nlohmann::json trace = nlohmann::json::parse(read_file(path));
  int reductions = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "communication") continue;
    CHECK(event["name"] == "reduce");
    CHECK(event["dur"] == 1000);
    ++reductions;
  }
  CHECK(reductions == 2 * 3);
}

TEST_CASE("transfers between GPUs are measured alone, on both ends the same number of times") {
  MeshRun run(pipeline(gpu_plan()));
  const std::string profile = run.folder() / "profile.json";
  for (const ChildResult& result : run.run({"--calibrate", profile})) {
    INFO(result.errors);
    REQUIRE(result.code == 0);
  }
  const nlohmann::json found = nlohmann::json::parse(read_file(profile));
  REQUIRE(found["communications"].size() == 1);
  const nlohmann::json& transfers = found["communications"][0];
  CHECK(transfers["kind"] == "send");
  CHECK(transfers["members"] == 2);
  REQUIRE(transfers["points"].size() == 2);
  CHECK(transfers["points"][0]["bytes"] == 8);
  CHECK(transfers["points"][1]["bytes"] == 20);  // a gradient and the loss, one message
  CHECK(found["kernels"].size() == 3);           // of both ranks
}

TEST_CASE("ranks that cannot have a GPU each are told so") {
  MeshRun run(replicas(gpu_plan()));
  for (const ChildResult& result : run.run({"--steps", "1"}, {{"SGTC_STUB_GPUS", "1"}})) {
    CHECK(result.code == 1);
    CHECK(result.errors ==
          "error: GPU: 2 ranks run on this host, GPUs that are visible: 1; start no more ranks "
          "than GPUs on a host\n");
  }
  for (const ChildResult& result :
       run.run({"--steps", "1"}, {{"SGTC_STUB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}})) {
    CHECK(result.code == 1);
    CHECK(contains(result.errors, "error: GPU: ranks 0 and 1 have the same one; give each rank"));
  }
}

TEST_CASE("a library that is missing or too old is told with what to install") {
  MeshRun run(replicas(gpu_plan()));
  const auto refusal = [&](const Settings& settings) {
    const std::vector<ChildResult> results = run.run({"--steps", "1"}, settings);
    CHECK(results[0].code == 1);
    return results[0].errors;
  };
  const std::string missing =
      refusal({{"SGTC_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}, {"LD_LIBRARY_PATH", "/some/where"}});
  CHECK(contains(missing, "error: NCCL: cannot be loaded: /nowhere/libnccl.so.2"));
  CHECK(contains(missing, "LD_LIBRARY_PATH is /some/where; install NCCL 2.19 or newer"));
  CHECK(contains(refusal({{"SGTC_NCCL_LIBRARY", "libm.so.6"}}),
                 "error: NCCL: the library libm.so.6 has no function ncclGetVersion; install"));
  const std::string old = refusal({{"SGTC_STUB_NCCL_VERSION", "21805"}});
  CHECK(contains(old, "error: NCCL: the library " SGTC_CUDA_STUB " is of version 2.18.5, expected "
                      "2.19.0 or newer; install"));
}

TEST_CASE("a call that fails is told with its rank, and ends the job") {
  MeshRun run(replicas(gpu_plan()));
  const auto failure = [&](const std::string& script) {
    run.start({"--steps", "3"}, {{"SGTC_STUB_FAIL", script}});
    return std::vector<ChildResult>{run.end(0), run.end(1)};
  };
  for (const char* script : {"ncclCommInitRankConfig=2", "ncclGroupEnd=2", "ncclAllReduce=2",
                             "ncclCommRegister=2", "ncclMemAlloc=2", "async=2", "async=2@6"}) {
    CAPTURE(script);
    const std::vector<ChildResult> results = failure(script);
    INFO(results[0].errors << results[1].errors);
    const int failed = results[0].code == 1 ? 0 : 1;
    const ChildResult& first = results[static_cast<size_t>(failed)];
    CHECK(first.code == 1);
    CHECK(contains(first.errors, "error: NCCL: rank " + std::to_string(failed) + ": "));
    CHECK(contains(first.errors, " failed: scripted failure: as the test wants (2); run again"));
    CHECK((results[static_cast<size_t>(1 - failed)].code == 200 ||
           results[static_cast<size_t>(1 - failed)].code == 1));
  }
}

TEST_CASE("a rank that waits for NCCL notices that the other is lost") {
  MeshRun run(replicas(gpu_plan()));
  run.start({"--steps", "3"}, {{"SGTC_STUB_POLLS", "1000000000"}});
  const Strings connecting = {"ncclCommInitRankConfig"};
  for (int i = 0; i < 3000 && run.calls(1, connecting).empty(); ++i) usleep(10000);
  run.signal(1, SIGKILL);
  const ChildResult result = run.end(0);
  INFO(result.errors);
  CHECK(result.code == 200);
  CHECK(contains(result.errors, "error: rank 1 (host "));
  CHECK(run.end(1).signal == SIGKILL);
}

TEST_CASE("a rank that waits for its GPU notices that the other is lost or stopped") {
  const bool pipelined = GENERATE(false, true);
  MeshRun run(pipelined ? pipeline(gpu_plan()) : replicas(gpu_plan()));
  for (const int number : {SIGKILL, SIGSTOP}) {
    const std::string log = run.folder() / "log";
    std::remove(log.c_str());
    run.start({"--steps", "1000000", "--log", log});
    for (int i = 0; i < 3000 && log_values(log, "loss").size() < 5; ++i) usleep(10000);
    run.signal(1, number);
    const ChildResult result = run.end(0);
    INFO(result.errors);
    CHECK(result.code == 200);
    CHECK(contains(result.errors,
                   number == SIGKILL ? "was lost: its connection ended" : "was lost: silent for"));
    run.signal(1, SIGKILL);
    CHECK(run.end(1).signal == SIGKILL);
  }
}

TEST_CASE("ranks end when one has left out a communication, which is named") {
  const std::string steps = GENERATE("3", "60");
  plan::Plan plan = replicas(gpu_plan());
  plan.prediction.step_seconds = 0.01;
  MeshRun run(plan);
  const std::string last = steps == "3" ? "4" : "61";  // they ask whether to begin it
  for (const int64_t careless : {0, 1}) {
    CAPTURE(steps, careless);
    const Settings skip = {{"SGTC_STUB_SKIP", steps == "3" ? "2" : "20"}};
    run.start_apart({"--steps", steps}, careless == 0 ? skip : Settings(),
                    careless == 1 ? skip : Settings());
    const std::vector<ChildResult> results = {run.end(0), run.end(1)};
    for (const ChildResult& result : results) {
      INFO(result.errors);
      CHECK(result.code == 200);
      CHECK(
          contains(result.errors, "error: all ranks wait for each other, nothing has ended for "));
      CHECK(contains(result.errors, " s: rank " + std::to_string(careless) + " (host "));
      CHECK(contains(result.errors, " waits for others, last in step " + last + "; rank "));
      CHECK(contains(result.errors,
                     " is in step " + last + "; this rank is in step " + last + "; start"));
    }
  }
}

TEST_CASE("a kernel that fails on all ranks is told by the first") {
  MeshRun run(replicas(gpu_plan()));
  run.start({"--steps", "3"}, {{"SGTC_STUB_FAIL", "communication=719@3"}});
  const ChildResult first = run.end(0);
  const ChildResult second = run.end(1);
  INFO(first.errors << second.errors);
  CHECK((first.code == 1 || second.code == 1));
  CHECK(contains(first.errors + second.errors, "a kernel failed: scripted error"));
}

TEST_CASE("too little memory for a rank with peers is told") {
  MeshRun run(replicas(gpu_plan()));
  CHECK(contains(run.run({"--steps", "1"}, {{"SGTC_STUB_MEMORY", "1000"}})[0].errors,
                 "(Stub): the program needs 0.00 GiB of its memory, free are"));
}

}  // namespace sgtc::runtime::cuda
