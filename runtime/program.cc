// From the command line to an exit code.
#include "program.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cpu_features.h"
#include "data_set.h"
#include "evaluation.h"
#include "failure.h"
#include "options.h"
#include "plan_loader.h"
#include "session.h"
#include "trace.h"
#include "training.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kTraceEvents = 1 << 16;

void check_options(const Options& options) {
  if (options.resume == "auto" && options.checkpoint.empty()) {
    die_usage("--resume auto", "needs the folder of the checkpoints", "add --checkpoint DIR");
  }
  if (options.save_every > 0 && options.checkpoint.empty()) {
    die_usage("--save-every", "needs a folder for the checkpoints", "add --checkpoint DIR");
  }
  if (options.eval_every > 0 && options.eval.empty()) {
    die_usage("--eval-every", "needs evaluation data", "add --eval NAME=FILE.npy");
  }
  const bool other_work = options.dry_run || !options.eval.empty() || !options.predict.empty();
  if (options.steps < 0 && !other_work) {
    die_usage("--steps", "is missing", "give the number of steps, --steps N");
  }
}

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

std::vector<NamedFile> training_files(const Options& options) {
  std::vector<NamedFile> files = options.data;
  files.insert(files.end(), options.tokens.begin(), options.tokens.end());
  // A run that only evaluates needs no training data.
  return files.empty() && options.steps <= 0 ? options.eval : files;
}

bool environment_flag(const char* name) {
  const char* text = std::getenv(name);
  return text && std::string(text) == "1";
}

void print_rank(const Session& session) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  std::printf("rank 0 of 1 | local rank 0 of 1 | host %s | master %s\n", host, host);
  std::printf("arena %ld bytes | available %ld bytes\n", static_cast<long>(session.arena().bytes()),
              static_cast<long>(available_memory()));
}

// All work of one run. Files stay mapped and the plan alive until it returns.
int run(const Program& program, const Options& options) {
  const std::vector<plan::Plan> plans = parse_plans(program.plans);
  const std::vector<DataFile> files = open_data_files(training_files(options));
  const std::vector<DataFile> eval_files = open_data_files(options.eval);
  DataSet data;
  const plan::Plan& plan = choose_plan(plans, options, files, data);
  DataSet eval_data = data;
  if (!options.eval.empty()) require(eval_data.bind(plan, eval_files));
  require(check_cpu_features(plan.cpu_features, plan.cpu));
  check_predictions(plan, options.predict);

  const bool poison = environment_flag("SGTC_POISON");
  Session session(program, plan, thread_count(options.threads), poison);
  const bool evaluates = !options.eval.empty() || !options.predict.empty();
  if (evaluates && !session.can_evaluate()) {
    die("evaluation", "the program was compiled without it", "compile it again with sgtc");
  }
  Evaluator evaluator(session, eval_data);
  if (!options.eval.empty() && evaluator.dropped_rows() > 0) {
    std::printf(
        "note: the last %ld of %ld evaluation samples do not fill a micro-batch of %ld and "
        "are left out of the loss\n",
        static_cast<long>(evaluator.dropped_rows()), static_cast<long>(eval_data.samples()),
        static_cast<long>(plan.micro_batch_rows));
    std::fflush(stdout);
  }
  Trace trace(options.trace.empty() ? 1 : kTraceEvents);
  if (!options.trace.empty()) session.set_trace(&trace);

  Training training(program, session, options, data, &evaluator);
  int code = kExitDone;
  if (options.dry_run) {
    print_rank(session);
    training.dry_run();
  } else {
    code = training.run();
    if (code == kExitDone && !options.predict.empty()) {
      evaluator.predict(training.control(), options.predict);
    }
    if (!options.trace.empty()) require(write_trace(options.trace, {trace.items()}));
  }
  if (poison) {
    std::printf("arena: highest byte touched %ld of %ld\n",
                static_cast<long>(session.arena().touched_bytes()),
                static_cast<long>(session.arena().bytes()));
  }
  return code;
}

}  // namespace

int run_program(const Program& program, int argument_count, const char* const* arguments) {
  const char* name = argument_count > 0 ? arguments[0] : "train";
  const Options options = parse_options(argument_count - 1, arguments + 1);
  int code = kExitDone;
  if (!print_information(program, options, name)) {
    check_options(options);
    code = run(program, options);
  }
  if (std::fflush(stdout) != 0) die("standard output", "cannot be written: " + system_error());
  return code;
}

}  // namespace sgtc::runtime
