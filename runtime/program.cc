// From the command line to an exit code.
#include "program.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "agreement.h"
#include "calibration.h"
#include "communication/groups.h"
#include "communication/job_communicators.h"
#include "cpu_features.h"
#include "evaluation.h"
#include "failure.h"
#include "inputs.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/starter.h"
#include "options.h"
#include "plan_loader.h"
#include "session.h"
#include "thread_pool.h"
#include "trace.h"
#include "training.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kTraceEvents = 1 << 16;

// Prints what was asked for instead of a run; true if something was.
bool print_information(const Program& program, const Options& options, const char* name) {
  if (options.help) {
    std::fputs(help_text(name).c_str(), stdout);
  } else if (options.version) {
    std::printf("sgtc %.*s, program %.*s\n", static_cast<int>(program.version.size()),
                program.version.data(), static_cast<int>(program.fingerprint.size()),
                program.fingerprint.data());
  } else if (options.print_plan) {
    std::fwrite(program.plans.data(), 1, program.plans.size(), stdout);
  } else {
    return false;
  }
  return true;
}

bool environment_flag(const char* name) {
  const char* text = std::getenv(name);
  return text && std::string(text) == "1";
}

// One line per rank, and what rank 0 knows of memory.
void print_ranks(Job& job, const Session& session) {
  const std::string device = session.device().description();
  const std::vector<std::string> arenas = job.all_gather(
      std::to_string(session.arena().bytes()) + " bytes" + (device.empty() ? "" : " | " + device));
  if (job.rank() != 0) return;
  const plan::Plan& plan = session.plan();
  const std::string& master = job.master().empty() ? job.self().host : job.master();
  for (const Member& member : job.members()) {
    const Coordinates coordinates = coordinates_of(plan, member.rank);
    std::printf("rank %ld of %ld | local rank %ld of %ld | host %s | master %s",
                static_cast<long>(member.rank), static_cast<long>(job.size()),
                static_cast<long>(member.local_rank), static_cast<long>(member.local_size),
                member.host.c_str(), master.c_str());
    std::printf(" | pp %ld | dp %ld | arena %s\n", static_cast<long>(coordinates.pp),
                static_cast<long>(coordinates.dp),
                arenas[static_cast<size_t>(member.rank)].c_str());
  }
  std::printf("available %ld bytes\n", static_cast<long>(available_memory()));
}

// Dies on all ranks if their data differs.
void compare_inputs(Job& job, const Inputs& inputs) {
  const std::vector<std::string> digests = job.all_gather(inputs.digest());
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    die("data",
        format("rank 0 has %s, rank %zu %s", digests[0].c_str(), rank, digests[rank].c_str()),
        "give all ranks the same data");
  }
}

// Rank 0 looks for mistakes that all ranks would run into, and tells about them once.
void check_inputs(Job& job, const Inputs& inputs) {
  if (job.rank() == 0) {
    inputs.check();
    std::fputs(inputs.notes().c_str(), stdout);
    std::fflush(stdout);
  }
  job.barrier();
}

// Writes the traces of all ranks and prints what communication cost.
void report_trace(Job& job, const std::string& path, const Trace& trace) {
  const std::vector<std::string> items = job.all_gather(trace.items());
  std::vector<OverlapSummary> overlaps;
  for (const std::string& text : job.all_gather(to_text(trace.overlap()))) {
    overlaps.push_back(parse_overlap(text));
  }
  if (job.rank() != 0) return;
  std::fputs(overlap_text(overlaps).c_str(), stdout);
  require(write_trace(path, items));
}

// How much of its arena each rank has used.
void print_touched(Job& job, Session& session) {
  const Touched touched = session.device().touched();
  const std::vector<std::string> ranks = job.all_gather(
      std::to_string(touched.end) + " of " + std::to_string(session.arena().bytes()) + ", " +
      std::to_string(touched.bytes) + " bytes in touched lines of " +
      std::to_string(Touched::kLine));
  for (size_t r = 0; job.rank() == 0 && r < ranks.size(); ++r) {
    const std::string rank = ranks.size() == 1 ? "" : " of rank " + std::to_string(r);
    std::printf("arena%s: highest byte touched %s\n", rank.c_str(), ranks[r].c_str());
  }
}

// All work of one rank. Files stay mapped until it returns.
int run(const Program& program, const std::vector<plan::Plan>& plans, const Options& options,
        Job& job) {
  const Inputs inputs(plans, job.size(), options);
  const plan::Plan& plan = inputs.plan();
  compare_inputs(job, inputs);
  check_inputs(job, inputs);
  require(check_cpu_features(plan.cpu_features, plan.cpu));

  const std::vector<int> cpus = allowed_cpus();  // before threads are bound to some of them
  const bool poison = environment_flag("SGTC_POISON");
  JobCommunicators communicators(plan, job);
  SessionOptions setup;
  setup.threads = thread_count(options.threads, job.threads());
  setup.poison = poison;
  setup.check_accesses = environment_flag("SGTC_CHECK_ACCESSES");
  setup.local_rank = job.self().local_rank;
  setup.local_size = job.self().local_size;
  setup.coordinates = coordinates_of(plan, job.rank());
  setup.communicators = communicators.get();
  setup.peers = communicators.peers();
  setup.job = &job;
  Session session(program, plan, setup);
  job.expect_step(plan.prediction.step_seconds);
  Evaluator evaluator(job, session, inputs.eval_data());
  Trace trace(options.trace.empty() ? 1 : kTraceEvents, job.rank());
  if (!options.trace.empty()) session.device().set_trace(&trace);

  Training training(program, job, session, options, inputs.data(), &evaluator);
  int code = kExitDone;
  if (options.dry_run) {
    print_ranks(job, session);
    training.dry_run();
    if (!options.calibrate.empty()) {
      calibrate(program, job, session, communicators.get(), cpus, setup.threads, options.calibrate);
    }
  } else {
    code = training.run();
    if (code == kExitDone && !options.predict.empty()) {
      evaluator.predict(training.control(), options.predict);
    }
    if (code != kExitFailure && !options.trace.empty()) {
      report_trace(job, options.trace, trace);
    }
  }
  if (poison && code != kExitFailure) print_touched(job, session);
  return code;
}

std::unique_ptr<Job> join(const Program& program, const Options& options,
                          const LaunchEnvironment& environment) {
  JobOptions job;
  job.fingerprint = program.fingerprint;
  job.agreement = agreement_of(options);
  job.secret_file = options.secret_file;
  job.checkpoint = options.checkpoint;
  job.timeout_seconds = options.rendezvous_timeout;
  return Job::join(environment, job);
}

// From a valid command line to the exit code: starts all ranks, or is one.
int launch(const Program& program, const Options& options, const char* const* arguments) {
  const std::vector<plan::Plan> plans = parse_plans(program.plans);
  const LaunchEnvironment environment =
      find_launch(options, plan_ranks(plans, options), meshes_text(plans));
  if (environment.starts > 0) {
    Inputs(plans, environment.size, options).check();  // mistakes are told once
    return start_ranks(environment, arguments);
  }
  const std::unique_ptr<Job> job = join(program, options, environment);
  return job->leave(run(program, plans, options, *job));
}

}  // namespace

int run_program(const Program& program, int argument_count, const char* const* arguments) {
  const char* name = argument_count > 0 ? arguments[0] : "train";
  const Options options = parse_options(argument_count - 1, arguments + 1);
  int code = kExitDone;
  if (!print_information(program, options, name)) {
    check_options(options);
    code = launch(program, options, arguments);
  }
  if (std::fflush(stdout) != 0) die("standard output", "cannot be written: " + system_error());
  return code;
}

}  // namespace sgtc::runtime
