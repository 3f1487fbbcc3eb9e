// A program with the launch of a real one and nothing else: its steps are barriers. Tests start it
// as one rank, with --nproc, and under real launchers.
//
//   PROBE_RANKS         ranks that it was "compiled" for (default 2)
//   PROBE_FINGERPRINT   of the "program"
//   PROBE_STEP_MS       duration of a step (default 0)
//   PROBE_DIE=RANK      this rank ends with an error in step 2
//   PROBE_COMPUTE=RANK  this rank computes for ever in step 2 and never looks at the job
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/failure.h"
#include "runtime/launch/job.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/starter.h"
#include "runtime/options.h"
#include "runtime/signals.h"
#include "runtime/thread_pool.h"

namespace {

using namespace sgtc::runtime;

std::string variable(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text ? text : otherwise;
}

int64_t number(const char* name, const char* otherwise) {
  return std::strtoll(variable(name, otherwise).c_str(), nullptr, 10);
}

void print_members(const Job& job) {
  if (job.rank() != 0) return;
  for (const Member& member : job.members()) {
    std::printf("member %ld | node %ld | local rank %ld of %ld | process %ld | host %s\n",
                static_cast<long>(member.rank), static_cast<long>(member.node),
                static_cast<long>(member.local_rank), static_cast<long>(member.local_size),
                static_cast<long>(member.pid), member.host.c_str());
  }
  std::printf("master %s\n", job.master().c_str());
}

// The gathered data must be what every rank gave.
void check_collectives(Job& job, int64_t step) {
  const std::string own = std::to_string(job.rank() * step);
  const std::vector<std::string> all = job.all_gather(own + std::string(20000, 'x'));
  for (int64_t rank = 0; rank < job.size(); ++rank) {
    if (all[static_cast<size_t>(rank)] != std::to_string(rank * step) + std::string(20000, 'x')) {
      die("all_gather", "is wrong");
    }
  }
  if (job.broadcast(own) != "0") die("broadcast", "is wrong");
}

void run_step(Job& job, int64_t step) {
  if (step == 2 && number("PROBE_DIE", "-1") == job.rank()) die("probe", "was told to fail");
  if (step == 2 && number("PROBE_COMPUTE", "-1") == job.rank()) {
    for (;;) pause();
  }
  job.enter(step, "all_reduce_1", 3);
  usleep(static_cast<useconds_t>(1000 * number("PROBE_STEP_MS", "0")));
  check_collectives(job, step);
  job.barrier();
}

int run(const Options& options, const LaunchEnvironment& environment) {
  catch_stop_signals();
  JobOptions job_options;
  job_options.fingerprint = variable("PROBE_FINGERPRINT", "abc");
  job_options.agreement = {{"--steps", std::to_string(options.steps)},
                           {"--seed", std::to_string(options.seed)}};
  job_options.secret_file = options.secret_file;
  job_options.checkpoint = options.checkpoint;
  job_options.timeout_seconds = options.rendezvous_timeout;
  const std::unique_ptr<Job> job = Job::join(environment, job_options);
  print_members(*job);
  std::printf("joined as %ld of %ld, process %d, threads %ld, cpus %zu, token %s\n",
              static_cast<long>(job->rank()), static_cast<long>(job->size()), getpid(),
              static_cast<long>(job->threads()), allowed_cpus().size(), job->token().c_str());
  std::fflush(stdout);
  for (int64_t step = 1; step <= options.steps; ++step) {
    if (!job->may_begin_step(step)) {
      std::printf("stopped before step %ld\n", static_cast<long>(step));
      return job->leave(kExitSignal);
    }
    std::printf("step %ld\n", static_cast<long>(step));
    std::fflush(stdout);
    run_step(*job, step);
  }
  return job->leave(kExitDone);
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse_options(count - 1, arguments + 1);
  const int64_t ranks = number("PROBE_RANKS", "2");
  const LaunchEnvironment environment = find_launch(options, {ranks}, std::to_string(ranks));
  if (environment.starts > 0) return start_ranks(environment, arguments);
  return run(options, environment);
}
