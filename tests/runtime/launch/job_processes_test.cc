// Jobs of several processes: how they end.
#include "runtime/failure.h"
#include "runtime/launch/probes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// Checks that all ranks but `victim` give up within `milliseconds`, with one line that names it and
// says `how` it was lost.
void check_survivors(Ranks& ranks, int64_t victim, const std::string& how, int64_t milliseconds) {
  const std::string name = "rank " + std::to_string(victim) + " (host ";
  const std::string process = "process " + std::to_string(ranks[victim].pid()) + ")";
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank == victim) continue;
    const ChildResult& result = ranks[rank].end(milliseconds);
    INFO("rank " << rank << ": " << result.errors);
    CHECK(result.code == kExitLost);
    CHECK(contains(result.errors, "error: " + name));
    CHECK(contains(result.errors, process + ": " + how));
    CHECK(contains(result.errors, "all_reduce_1 of micro-batch 3"));
    CHECK(result.errors.find('\n') == result.errors.size() - 1);
  }
}

}  // namespace

TEST_CASE("a killed rank is noticed by all others") {
  for (int64_t victim : {0, 1, 2}) {
    Ranks ranks(3);
    ranks.start_all();
    REQUIRE(ranks.wait_until_running());
    ranks[victim].signal(SIGKILL);
    check_survivors(ranks, victim, "was lost: its connection ended", 2000);
  }
}

TEST_CASE("a stopped rank is noticed by all others") {
  for (int64_t victim : {0, 2}) {
    Ranks ranks(3);
    ranks.start_all();
    REQUIRE(ranks.wait_until_running());
    ranks[victim].signal(SIGSTOP);
    check_survivors(ranks, victim, "was lost: silent for ", 4000);
    ranks[victim].signal(SIGCONT);
    CHECK(ranks[victim].end().code == kExitLost);
  }
}

TEST_CASE("a rank that dies of an error of its own says so") {
  for (int64_t victim : {0, 1}) {
    Ranks ranks(3, {{"PROBE_DIE", std::to_string(victim)}});
    ranks.start_all();
    check_survivors(ranks, victim, "ended with exit code 1", 3000);
    CHECK(ranks[victim].end().code == kExitFailure);
    CHECK(contains(ranks[victim].end().errors, "was told to fail"));
  }
}

TEST_CASE("a rank that does not look at the job is ended by its monitor") {
  Ranks ranks(3, {{"PROBE_COMPUTE", "1"}, {"PROBE_DIE", "2"}});
  ranks.start_all();
  const ChildResult& result = ranks[1].end(6000);
  CHECK(result.code == kExitLost);
  CHECK(contains(result.errors, "this rank is in step 2; start"));
}

TEST_CASE("a normal end is no loss") {
  Ranks ranks(3, {{"PROBE_STEP_MS", "0"}}, "50");
  ranks.start_all();
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    INFO(ranks[rank].end().errors);
    CHECK(ranks[rank].end().code == 0);
    CHECK(ranks[rank].end().errors.empty());
    CHECK(contains(ranks[rank].output(), "step 50\n"));
  }
}

TEST_CASE("a signal to one rank stops all before the same step") {
  for (int64_t receiver : {0, 1, 2}) {
    Ranks ranks(3);
    ranks.start_all();
    REQUIRE(ranks.wait_until_running());
    ranks[receiver].signal(receiver == 1 ? SIGINT : SIGTERM);
    std::string stopped;
    for (int64_t rank = 0; rank < ranks.size(); ++rank) {
      const ChildResult& result = ranks[rank].end(3000);
      INFO(result.errors);
      CHECK(result.code == kExitSignal);
      const size_t at = result.output.find("stopped before step ");
      REQUIRE(at != std::string::npos);
      if (rank == 0) stopped = result.output.substr(at);
      CHECK(result.output.substr(at) == stopped);
    }
  }
}

TEST_CASE("a pause of the whole job is no loss") {
  Ranks ranks(2);
  ranks.start_all();
  REQUIRE(ranks.wait_until_running());
  for (int64_t rank : {0, 1}) ranks[rank].signal(SIGSTOP);
  usleep(1500000);
  for (int64_t rank : {0, 1}) ranks[rank].signal(SIGCONT);
  usleep(300000);
  ranks[1].signal(SIGTERM);
  for (int64_t rank : {0, 1}) {
    INFO(ranks[rank].end().errors);
    CHECK(ranks[rank].end().code == kExitSignal);
  }
}

}  // namespace sgtc::runtime
