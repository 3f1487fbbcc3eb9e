#include "training.h"

#include <algorithm>
#include <cstdio>

#include "durable_file.h"
#include "failure.h"
#include "plan_loader.h"
#include "signals.h"
#include "trace.h"

namespace sgtc::runtime {

Training::Training(const Program& program, Session& session, const Options& options,
                   const DataSet& data, Evaluator* evaluator)
    : session_(session),
      options_(options),
      data_(data),
      evaluator_(evaluator),
      feeder_(data, session.memory()),
      memory_total_(total_memory()) {
  const plan::Plan& plan = session.plan();
  check_data();
  check_outputs();
  writer_ = {options.checkpoint, options.keep, plan.model_fingerprint,
             std::string(program.fingerprint)};
  progress_.seed = options.seed;
  resume();
  const Weights weights(program);
  if (progress_.step > 0) {
    session.states().initialize_constants(weights);
  } else {
    session.states().initialize(weights, progress_.seed);
    if (!options.init.empty()) session.states().load_initial_file(options.init);
  }
  order_ = {data.samples(), options.shuffle, progress_.seed};
  rate_ = {options.learning_rate, options.warmup, options.decay, options.steps};
  if (!options.dry_run) reporter_.open(options.quiet, options.log, progress_.step > 0);
}

void Training::check_data() const {
  const int64_t rows = rows_per_step(session_.plan());
  if (data_.samples() == 0 || (options_.steps <= 0 && !options_.dry_run)) return;
  if (data_.samples() < rows) {
    die("data",
        format("has %ld samples, a step takes %ld", static_cast<long>(data_.samples()),
               static_cast<long>(rows)),
        "give more data, or compile with a smaller batch or fewer micro-batches");
  }
  const int64_t left = data_.samples() % rows;
  if (left == 0) return;
  if (options_.last_batch == "pad") {
    die("--last-batch=pad",
        format("%ld samples would be padded to a step of %ld, and the rows of this program have "
               "no weights",
               static_cast<long>(left), static_cast<long>(rows)),
        "use --last-batch=drop");
  }
  std::printf(
      "note: the last %ld of %ld samples do not fill a step of %ld and are dropped in "
      "each epoch (--last-batch=drop)\n",
      static_cast<long>(left), static_cast<long>(data_.samples()), static_cast<long>(rows));
  std::fflush(stdout);
}

void Training::check_outputs() const {
  if (options_.dry_run) return;
  if (!options_.save.empty()) require(probe_writable(options_.save));
  if (!options_.trace.empty()) require(probe_writable(options_.trace));
  for (const NamedFile& output : options_.predict) require(probe_writable(output.path));
  if (options_.checkpoint.empty()) return;
  require(make_folders(options_.checkpoint));
  require(probe_writable(options_.checkpoint + "/checkpoint"));
}

void Training::resume() {
  const bool automatic = options_.resume == "auto";
  const std::string& root = options_.checkpoint;
  std::optional<Checkpoint> found;
  if (!options_.resume.empty()) found = find_checkpoint(automatic ? root : options_.resume);
  if (!found && !options_.resume.empty() && !automatic) {
    die(options_.resume, "holds no checkpoint", "give the folder that --checkpoint named");
  }
  const int64_t newest = root.empty() || options_.dry_run ? -1 : newest_step(root);
  if (!found) {
    if (newest < 0) return;
    die(root,
        format("holds checkpoints up to step %ld of an earlier run", static_cast<long>(newest)),
        "go on with --resume auto, or give an empty folder");
  }
  if (found->model_fingerprint != writer_.model_fingerprint) {
    die(found->folder,
        "belongs to another model: fingerprint " + found->model_fingerprint + ", expected " +
            writer_.model_fingerprint,
        "resume with a program of the same graph, parameters and optimizer");
  }
  if (!automatic && newest > found->progress.step) {
    die(root,
        format("also holds step %ld, after the step %ld to resume from", static_cast<long>(newest),
               static_cast<long>(found->progress.step)),
        "give --checkpoint another folder, or remove the later steps");
  }
  require(
      session_.states().restore(found->folder, found->model.tensors(), found->optimizer.tensors()));
  const int64_t seed = options_.seed_given ? options_.seed : found->progress.seed;
  progress_ = found->progress;
  progress_.seed = seed;
  if (newest == progress_.step) saved_step_ = newest;
  std::printf("resuming from %s\n", found->folder.c_str());
  std::fflush(stdout);
}

StepControl Training::control() const {
  return {rate_.at(progress_.step + 1), progress_.seed, progress_.step + 1};
}

StepReport Training::step() {
  const int64_t begin = monotonic_nanoseconds();
  const StepControl control = this->control();
  load_step(session_.plan(), feeder_, order_, progress_.position);
  const StepResult result = session_.train_step(control);
  const int64_t end = monotonic_nanoseconds();
  progress_.step = control.step;
  if (!result.finite) ++progress_.skipped;

  StepReport report;
  report.step = control.step;
  report.steps = std::max(options_.steps, control.step);  // a dry run needs no --steps
  report.has_loss = result.has_loss;
  report.loss = result.loss;
  report.has_gradient_norm = result.has_gradient_norm;
  report.gradient_norm = result.gradient_norm;
  report.learning_rate = control.learning_rate;
  report.milliseconds = static_cast<double>(end - begin) * 1e-6;
  report.samples = data_.samples() == 0 ? 0 : rows_per_step(session_.plan());
  report.tokens = report.samples * data_.tokens_per_sample();
  report.skipped = !result.finite;
  report.skipped_total = progress_.skipped;
  report.memory = std::max(session_.arena().bytes(), peak_resident_bytes());
  report.memory_total = memory_total_;
  const double done = static_cast<double>(control.step - first_step_ + 1);
  const double elapsed = static_cast<double>(end - start_time_) * 1e-9;
  report.seconds_left = elapsed / done * static_cast<double>(report.steps - control.step);
  return report;
}

int Training::run() {
  catch_stop_signals();
  first_step_ = progress_.step + 1;
  start_time_ = monotonic_nanoseconds();
  while (progress_.step < options_.steps && !stop_requested()) {
    const StepReport report = step();
    reporter_.step(report);
    if (report.skipped && options_.on_nan == "stop") {
      reporter_.finish();
      die(format("step %ld", static_cast<long>(report.step)),
          "loss or gradient is not finite (--on-nan stop)",
          "lower --lr, clip with --clip-norm, or look at the data of this step");
    }
    after_step();
  }
  reporter_.finish();
  if (!options_.checkpoint.empty() && progress_.step > 0) write_checkpoint();
  if (stop_requested()) return kExitSignal;
  if (!options_.save.empty()) write_weights();
  if (evaluator_ && !options_.eval.empty()) evaluate();
  if (progress_.skipped > 0) {
    reporter_.note(format("%ld of %ld steps were skipped because a gradient was not finite",
                          static_cast<long>(progress_.skipped), static_cast<long>(progress_.step))
                       .c_str());
  }
  return stop_requested() ? kExitSignal : kExitDone;
}

void Training::after_step() {
  const int64_t step = progress_.step;
  if (options_.save_every > 0 && step % options_.save_every == 0) write_checkpoint();
  if (evaluator_ && options_.eval_every > 0 && step % options_.eval_every == 0) evaluate();
}

void Training::dry_run() {
  start_time_ = monotonic_nanoseconds();
  const StepReport report = step();
  char text[1024];
  format_step_line(report, text, sizeof text);
  std::printf("%s\n", text);
}

void Training::evaluate() {
  if (evaluated_step_ == progress_.step) return;
  const std::optional<double> loss = evaluator_->loss(control());
  if (!loss) return;
  reporter_.finish();
  reporter_.evaluation(progress_.step, *loss);
  evaluated_step_ = progress_.step;
}

void Training::write_checkpoint() {
  if (saved_step_ == progress_.step) return;
  const States& states = session_.states();
  require(writer_.write(progress_, states.model_tensors(), states.optimizer_tensors()));
  saved_step_ = progress_.step;
}

void Training::write_weights() const {
  DurableFile file;
  const std::string temporary = options_.save + ".tmp";
  require(file.create(temporary));
  require(write_safetensors(file, session_.states().model_tensors()));
  require(file.finish());
  require(rename_durably(temporary, options_.save));
}

}  // namespace sgtc::runtime
