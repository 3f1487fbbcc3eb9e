#include "training.h"

#include <algorithm>
#include <cstdio>

#include "communication/groups.h"
#include "failure.h"
#include "joint_file.h"
#include "plan_loader.h"
#include "resume.h"
#include "signals.h"
#include "trace.h"

namespace sgtc::runtime {
namespace {

bool has_learning_rate(const plan::Plan& plan) {
  return std::any_of(plan.control.begin(), plan.control.end(),
                     [](const plan::Control& control) { return control.name == "learning_rate"; });
}

bool has_shards(const plan::Plan& plan) {
  return std::any_of(plan.states.begin(), plan.states.end(),
                     [](const plan::State& state) { return state.shards > 1; });
}

void check_learning_rate(const plan::Plan& plan, const Options& options) {
  if (options.rate_option.empty() || has_learning_rate(plan)) return;
  die_usage(options.rate_option, "has no effect: the model brings its own learning rate",
            "leave the option out");
}

}  // namespace

Training::Training(const Program& program, Job& job, Session& session, const Options& options,
                   const DataSet& data, Evaluator* evaluator)
    : job_(job),
      session_(session),
      options_(options),
      data_(data),
      evaluator_(evaluator),
      feeder_(session.plan(), data, session.memory()) {
  const plan::Plan& plan = session.plan();
  check_learning_rate(plan, options);
  writer_ = {options.checkpoint, options.keep, plan.model_fingerprint,
             std::string(program.fingerprint), has_shards(plan)};
  progress_.seed = options.seed;
  resume();
  const Weights weights(program);
  if (progress_.step > 0) {
    session.states().initialize_constants(weights);
  } else {
    session.initialize_states(weights, progress_.seed);
    if (!options.init.empty()) load_initial_values();
  }
  session.upload_states();
  order_ = {data.samples(), options.shuffle, progress_.seed};
  rate_ = {options.learning_rate, options.warmup, options.decay, options.steps};
  if (reports() && !options.dry_run) {
    reporter_.open(options.quiet, options.log, progress_.step > 0);
  }
}

void Training::resume() {
  const ResumePoint point = choose_resume_point(job_, options_, writer_.model_fingerprint);
  if (point.folder.empty()) return;
  Checkpoint checkpoint;
  require(open_checked_checkpoint(point.folder, checkpoint));
  require(session_.states().restore(point.folder, checkpoint.model.tensors(),
                                    checkpoint.optimizer.tensors()));
  progress_ = checkpoint.progress;
  if (options_.seed_given) progress_.seed = options_.seed;
  if (point.newest_step == progress_.step) saved_step_ = point.newest_step;
  if (!reports()) return;
  std::printf("resuming from %s\n", point.folder.c_str());
  std::fflush(stdout);
}

void Training::load_initial_values() const {
  TensorFiles files;
  require(files.open(options_.init));
  if (job_.rank() == 0) check_initial_tensors(session_.plan(), options_.init, files.tensors());
  job_.barrier();
  session_.states().load_initial(files.tensors());
}

StepControl Training::control() const {
  return {rate_.at(progress_.step + 1), progress_.seed, progress_.step + 1};
}

void Training::start_step() {
  const int64_t begin = monotonic_nanoseconds();
  const StepControl control = this->control();
  session_.await_inputs();
  const int64_t samples = load_step(session_.plan(), session_.coordinates().dp, feeder_, order_,
                                    pads_last_batch(session_.plan(), options_), progress_.position);
  session_.start_step(control);
  progress_.step = control.step;
  started_[static_cast<size_t>(started_count_++)] = {control, begin, samples};
}

StepReport Training::finish_step() {
  const StepResult result = session_.finish_step();
  const Started started = started_.front();
  std::move(started_.begin() + 1, started_.end(), started_.begin());
  --started_count_;
  const StepControl& control = started.control;
  const int64_t begin = std::max(started.time, finish_time_);
  const int64_t end = finish_time_ = monotonic_nanoseconds();
  if (!result.finite) ++progress_.skipped;

  StepReport report;
  report.step = control.step;
  report.steps = std::max(options_.steps, control.step);  // a dry run needs no --steps
  report.has_loss = result.has_loss;
  report.loss = result.loss;
  report.has_gradient_norm = result.has_gradient_norm;
  report.gradient_norm = result.gradient_norm;
  report.has_learning_rate = has_learning_rate(session_.plan());
  report.learning_rate = control.learning_rate;
  report.milliseconds = static_cast<double>(end - begin) * 1e-6;
  report.samples = started.samples;
  report.tokens = report.samples * data_.tokens_per_sample();
  report.skipped = !result.finite;
  report.skipped_total = progress_.skipped;
  report.memory = session_.device().memory_used();
  report.memory_total = session_.device().memory_total();
  const double done = static_cast<double>(control.step - first_step_ + 1);
  const double elapsed = static_cast<double>(end - start_time_) * 1e-9;
  report.seconds_left = elapsed / done * static_cast<double>(report.steps - control.step);
  return report;
}

int Training::run() {
  catch_stop_signals();
  first_step_ = progress_.step + 1;
  start_time_ = monotonic_nanoseconds();
  bool stops = false;
  while (!stops) {
    stops = !job_.may_begin_step(progress_.step + 1);
    if (stops || progress_.step >= options_.steps) break;
    start_step();
    const bool pauses = is_due(options_.save_every) || is_due(options_.eval_every);
    if (!finish_steps(pauses ? 0 : session_.device().steps_ahead())) return kExitFailure;
    stops = !after_step();
  }
  if (!finish_steps(0)) return kExitFailure;
  return finish(stops);
}

bool Training::finish_steps(int64_t left) {
  while (started_count_ > left) {
    const StepReport report = finish_step();
    times_.add(report.milliseconds);
    if (reports()) reporter_.step(report);
    if (!report.skipped || options_.on_nan != "stop") continue;
    stop_at_nan(report);
    return false;
  }
  return true;
}

void Training::stop_at_nan(const StepReport& report) {
  job_.barrier();  // or one that is still in this step would take the end of another for a loss
  if (!reports()) return;
  reporter_.finish();
  die(format("step %ld", static_cast<long>(report.step)),
      "loss or gradient is not finite (--on-nan stop)",
      "lower --lr, clip with --clip-norm, or look at the data of this step");
}

// Whether something that happens after each `every`-th step does now; 0: never.
bool Training::is_due(int64_t every) const { return every > 0 && progress_.step % every == 0; }

bool Training::after_step() {
  if (is_due(options_.save_every)) write_checkpoint();
  return !evaluator_ || !is_due(options_.eval_every) || evaluate();
}

// What the plan predicted beside what this run took.
void Training::compare_with_prediction() {
  const double predicted = session_.plan().prediction.step_seconds * 1e3;
  if (!reports() || options_.quiet || predicted <= 0 || times_.count() == 0) return;
  reporter_.note(format("a step: predicted %.1f ms, measured %.1f ms (median of %ld)", predicted,
                        times_.median(), static_cast<long>(times_.count()))
                     .c_str());
}

int Training::finish(bool stops) {
  reporter_.finish();
  compare_with_prediction();
  if (!options_.checkpoint.empty() && progress_.step > 0) write_checkpoint();
  if (stops) return kExitSignal;
  if (!options_.save.empty()) write_weights();
  const bool evaluated = !evaluator_ || options_.eval.empty() || evaluate();
  if (progress_.skipped > 0 && reports()) {
    reporter_.note(format("%ld of %ld steps were skipped because a gradient was not finite",
                          static_cast<long>(progress_.skipped), static_cast<long>(progress_.step))
                       .c_str());
  }
  return evaluated ? kExitDone : kExitSignal;
}

void Training::dry_run() {
  start_time_ = monotonic_nanoseconds();
  start_step();
  const StepReport report = finish_step();
  if (!reports()) return;
  char text[1024];
  format_step_line(report, text, sizeof text);
  std::printf("%s\n", text);
}

bool Training::evaluate() {
  if (evaluated_step_ == progress_.step) return true;
  const std::optional<double> loss = evaluator_->loss(control());
  if (!loss) return false;
  evaluated_step_ = progress_.step;
  if (!reports()) return true;
  reporter_.finish();
  reporter_.evaluation(progress_.step, *loss);
  return true;
}

void Training::write_checkpoint() {
  if (saved_step_ == progress_.step) return;
  const Coordinates& coordinates = session_.coordinates();
  CheckpointPart part;
  part.position = coordinates.pp;
  part.positions = axis_size(session_.plan(), "pp");
  part.writes = coordinates.dp == 0 && coordinates.tp == 0;
  if (part.writes || writer_.has_parts) session_.download_states();
  part.model = session_.states().model_tensors();
  part.optimizer = session_.states().optimizer_tensors();
  part.parts = session_.states().optimizer_parts();
  require(writer_.write(job_, progress_, part));
  saved_step_ = progress_.step;
}

void Training::write_weights() const {
  const TensorMap layout = model_layout(session_.plan());
  int64_t bytes = 0;
  for (const auto& [name, tensor] : layout) bytes += tensor.bytes;
  JointFile file(job_, options_.save);
  file.begin(safetensors_header(layout), bytes);
  const bool writes = session_.coordinates().dp == 0 && session_.coordinates().tp == 0;
  if (writes) session_.download_states();
  const TensorMap own = writes ? session_.states().model_tensors() : TensorMap();
  int64_t offset = 0;
  for (const auto& [name, tensor] : layout) {
    const auto found = own.find(name);
    if (found != own.end()) file.write(found->second.data, tensor.bytes, offset);
    offset += tensor.bytes;
  }
  file.commit();
}

}  // namespace sgtc::runtime
