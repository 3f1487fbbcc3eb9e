// One process that starts all ranks of this machine.
#include "runtime/failure.h"
#include "runtime/launch/prefixed_lines.h"
#include "runtime/launch/probes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// What PrefixedLines writes for the pieces.
std::string prefixed(const std::vector<std::string>& pieces) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  PrefixedLines lines("[3] ", ends[1]);
  for (const std::string& piece : pieces) CHECK(lines.append(piece));
  CHECK(lines.finish());
  close(ends[1]);
  char text[1000];
  const ssize_t length = read(ends[0], text, sizeof text);
  close(ends[0]);
  return {text, static_cast<size_t>(length)};
}

// The process of a rank as it printed it.
pid_t process_of(const Probe& probe, const std::string& rank) {
  const std::string output = probe.output();
  const std::string before = "joined as " + rank + " of ";
  const size_t at = output.find("process ", output.find(before));
  return at == std::string::npos ? -1 : std::stoi(output.substr(at + 8));
}

// True once no process `pid` runs; false after two seconds.
bool is_gone(pid_t pid) {
  for (int i = 0; i < 400; ++i) {
    const std::string status = read_file("/proc/" + std::to_string(pid) + "/stat");
    if (status.empty() || contains(status, ") Z ")) return true;
    usleep(5000);
  }
  return false;
}

}  // namespace

TEST_CASE("each line of a rank begins with its number") {
  CHECK(prefixed({"a\nb\n"}) == "[3] a\n[3] b\n");
  CHECK(prefixed({"a", "b\nc", "\n"}) == "[3] ab\n[3] c\n");
  CHECK(prefixed({"a\n\nno end"}) == "[3] a\n[3] \n[3] no end\n");
}

TEST_CASE("all ranks of a job on this machine") {
  Probe probe({"--steps", "2"}, {{"PROBE_RANKS", "8"}});
  const ChildResult& result = probe.end();
  INFO(result.errors);
  CHECK(result.code == 0);
  CHECK(result.errors.empty());
  for (const std::string rank : {"0", "3", "7"}) {
    CHECK(contains(result.output, "[" + rank + "] joined as " + rank + " of 8"));
    CHECK(
        contains(result.output, "[0] member " + rank + " | node 0 | local rank " + rank + " of 8"));
  }
}

TEST_CASE("the option --nproc starts as many ranks as the program is for") {
  CHECK(Probe({"--steps", "1", "--nproc", "3"}, {{"PROBE_RANKS", "3"}}).end().code == 0);
  Probe other({"--steps", "1", "--nproc", "3"}, {{"PROBE_RANKS", "2"}});
  CHECK(other.end().code == kExitFailure);
  CHECK(contains(other.end().errors, "compiled for 2, started with 3"));
}

TEST_CASE("the exit code is that of the rank that failed first") {
  Probe failed({"--steps", "9"}, {{"PROBE_RANKS", "3"}, {"PROBE_DIE", "1"}});
  CHECK(failed.end().code == kExitFailure);
  CHECK(contains(failed.end().errors, "[1] error: probe: was told to fail"));
  CHECK(contains(failed.end().errors, "[0] error: rank 1 (host "));

  Probe killed({"--steps", "10000"}, {{"PROBE_RANKS", "3"}, {"PROBE_STEP_MS", "10"}});
  REQUIRE(killed.wait_for("[2] step 2\n"));
  kill(process_of(killed, "2"), SIGKILL);
  CHECK(killed.end().code == 128 + SIGKILL);
  CHECK(contains(killed.end().errors, "was ended by signal 9"));
}

TEST_CASE("signals are passed on to all ranks") {
  Probe probe({"--steps", "10000"}, {{"PROBE_RANKS", "3"}, {"PROBE_STEP_MS", "10"}});
  REQUIRE(probe.wait_for("[2] step 2\n"));
  probe.signal(SIGTERM);
  CHECK(probe.end().code == kExitSignal);
  CHECK(probe.end().errors.empty());
  for (const std::string rank : {"0", "1", "2"}) {
    CHECK(contains(probe.output(), "[" + rank + "] stopped before step "));
  }
}

TEST_CASE("ranks end with the process that started them") {
  Probe probe({"--steps", "10000"}, {{"PROBE_RANKS", "2"}, {"PROBE_STEP_MS", "10"}});
  REQUIRE(probe.wait_for("[1] step 2\n"));
  const pid_t ranks[] = {process_of(probe, "0"), process_of(probe, "1")};
  probe.signal(SIGKILL);
  for (pid_t rank : ranks) {
    CHECK(rank > 0);
    CHECK(is_gone(rank));
  }
}

TEST_CASE("pods start their ranks of one job") {
  Settings pod = {{"PROBE_RANKS", "4"},
                  {"PET_NNODES", "2"},
                  {"PET_NODE_RANK", "0"},
                  {"PET_MASTER_ADDR", "localhost"},
                  {"PET_MASTER_PORT", free_port()}};
  Probe first({"--steps", "3"}, pod);
  pod["PET_NODE_RANK"] = "1";
  Probe second({"--steps", "3"}, pod);
  CHECK(second.end().code == 0);
  CHECK(first.end().code == 0);
  CHECK(contains(first.output(), "[1] joined as 1 of 4"));
  CHECK(contains(second.output(), "[3] joined as 3 of 4"));
}

TEST_CASE("a Slurm batch script is told to use srun") {
  const Settings batch = {{"SLURM_JOB_ID", "5"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  Probe probe({"--steps", "1"}, batch);
  CHECK(probe.end(5000).code == kExitFailure);
  CHECK(contains(probe.end().errors, "start the program with srun"));
  CHECK(Probe({"--steps", "1", "--nproc", "2"}, batch).end().code == 0);
  Settings alone = batch;
  alone["PROBE_RANKS"] = "1";
  CHECK(Probe({"--steps", "1"}, alone).end().code == 0);
}

}  // namespace sgtc::runtime
