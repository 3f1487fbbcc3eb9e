#include "runtime/communication/job_communicators.h"

#include <cstdlib>

#include "runtime/communication/collectives.h"
#include "runtime/communication/processes.h"
#include "runtime/launch/probes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// One communicator "all" over the replicas.
plan::Plan plan_of(int64_t ranks) {
  plan::Plan plan;
  plan.mesh = {{"pp", 1}, {"dp", ranks}, {"tp", 1}};
  plan.communicators = {{"all", "dp", 0}};
  plan.positions.resize(1);
  plan.positions[0].buffers = {{"gradient", "step", "f32", {1024}, 4096, 0, 0, 1}};
  plan::Task reduce;
  reduce.kind = "all_reduce";
  reduce.communicator = "all";
  reduce.inputs = reduce.outputs = {{"gradient", {}, 0}};
  plan.positions[0].tasks = {reduce};
  return plan;
}

// Joins a real job. `transport` is what only rank 0 has in its environment.
ConnectRanks by_job(const std::string& transport) {
  return [transport, port = std::stoll(free_port())](Meeting&, const std::vector<RankGroup>&,
                                                     int64_t rank, int64_t ranks,
                                                     const RankBody& body) {
    if (rank == 0) setenv("SGTC_TRANSPORT", transport.c_str(), 1);
    LaunchEnvironment environment;
    environment.rank = rank;
    environment.size = ranks;
    environment.master = "127.0.0.1";
    environment.port = port;
    environment.secret = "a secret";
    const std::unique_ptr<Job> job = Job::join(environment, {});
    Bytes result;
    {
      JobCommunicators communicators(plan_of(ranks), *job);
      result = body(rank, *communicators.get());
      job->barrier();
    }
    if (job->leave(0) != 0) std::abort();
    return result;
  };
}

RunRanks run_as_job(const std::string& transport) {
  return [transport](const std::vector<RankGroup>& groups, int64_t ranks, const RankBody& body) {
    return run_processes(groups, ranks, by_job(transport), body);
  };
}

std::vector<std::string> transports() {
#ifdef SGTC_HAS_GLOO
  return {"", "gloo"};
#else
  return {""};
#endif
}

}  // namespace

TEST_CASE("ranks of a job communicate through memory or by Gloo, with the same bits") {
  for (const std::string& transport : transports()) {
    CAPTURE(transport);
    for (const CommunicationKind kind : kCollectives) {
      check_collective(run_as_job(transport), {kind, "f32", Reduction::sum, 3, 50001});
    }
  }
}

TEST_CASE("ranks of a job notice that one was killed while they communicate") {
  for (const std::string& transport : transports()) {
    for (const size_t victim : {size_t{0}, size_t{2}}) {
      CAPTURE(transport, victim);
      CHECK(survivors_notice(by_job(transport), CommunicationKind::all_reduce, victim));
    }
  }
}

TEST_CASE("a transport that does not exist is refused by all ranks") {
  const TemporaryFolder folders[2];
  const auto connect = by_job("carrier pigeon");
  std::vector<pid_t> children;
  Meeting* meeting = Meeting::make();
  for (int64_t rank : {0, 1}) {
    children.push_back(start_child(folders[rank], [&] {
      connect(*meeting, {}, rank, 2, [](int64_t, auto&) { return Bytes(); });
      return 0;
    }));
  }
  for (const size_t rank : {0, 1}) {
    const ChildResult result = wait_for_child(folders[rank], children[rank]);
    CHECK(result.code == kExitUsage);
    CHECK(contains(result.errors, "SGTC_TRANSPORT: \"carrier pigeon\" is not a transport"));
  }
  Meeting::release(meeting);
}

TEST_CASE("a job of one rank has no communicators") {
  const std::unique_ptr<Job> job = Job::alone();
  CHECK(JobCommunicators(plan_of(1), *job).get() == nullptr);
}

}  // namespace sgtc::runtime
