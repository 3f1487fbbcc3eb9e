#include "inputs.h"

#include "batches.h"
#include "communication/groups.h"
#include "durable_file.h"
#include "evaluation.h"
#include "failure.h"
#include "plan_loader.h"

namespace sgtc::runtime {
namespace {

std::vector<NamedFile> training_files(const Options& options) {
  std::vector<NamedFile> files = options.data;
  files.insert(files.end(), options.tokens.begin(), options.tokens.end());
  // A run that only evaluates needs no training data.
  return files.empty() && options.steps <= 0 ? options.eval : files;
}

std::string left_over(int64_t left, int64_t samples, const char* kind, int64_t rows,
                      const char* consequence) {
  return format("note: the last %ld of %ld %s %ld and are %s\n", static_cast<long>(left),
                static_cast<long>(samples), kind, static_cast<long>(rows), consequence);
}

}  // namespace

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

Inputs::Inputs(const std::vector<plan::Plan>& plans, int64_t ranks, const Options& options)
    : options_(options),
      files_(open_data_files(training_files(options))),
      eval_files_(open_data_files(options.eval)) {
  plan_ = &choose_plan(plans, ranks, options, files_, data_);
  if (!options.eval.empty()) require(eval_data_.bind(*plan_, eval_files_));
}

bool Inputs::trains() const {
  return data_.samples() > 0 && (options_.steps > 0 || options_.dry_run);
}

void Inputs::check() const {
  check_steps();
  check_evaluation();
  if (!options_.dry_run) check_outputs();
}

void Inputs::check_steps() const {
  const int64_t rows = rows_per_step(*plan_);
  if (!trains()) return;
  const int64_t left = data_.samples() % rows;
  if (left != 0 && options_.last_batch == "pad" && plan_->row_weights.empty()) {
    die("--last-batch=pad",
        format("%ld samples would be padded to a step of %ld, and the rows of this program have "
               "no weights",
               static_cast<long>(left), static_cast<long>(rows)),
        "compile it with sgtc --last-batch=pad, or use --last-batch=drop");
  }
  if (data_.samples() < rows && !pads_last_batch(*plan_, options_)) {
    die("data",
        format("has %ld samples, a step takes %ld", static_cast<long>(data_.samples()),
               static_cast<long>(rows)),
        "give more data, compile with a smaller batch, fewer micro-batches or replicas, or pad "
        "with --last-batch=pad");
  }
}

void Inputs::check_evaluation() const {
  check_predictions(*plan_, options_.predict);
  if (options_.eval.empty() && options_.predict.empty()) return;
  for (const plan::Position& position : plan_->positions) {
    if (position.schedules.count("evaluate") > 0) return;
  }
  die("evaluation", "the program was compiled without it", "compile it again with sgtc");
}

void Inputs::check_outputs() const {
  if (!options_.save.empty()) require(probe_writable(options_.save));
  if (!options_.trace.empty()) require(probe_writable(options_.trace));
  for (const NamedFile& output : options_.predict) require(probe_writable(output.path));
  if (options_.checkpoint.empty()) return;
  require(make_folders(options_.checkpoint));
  require(probe_writable(options_.checkpoint + "/checkpoint"));
}

std::string Inputs::notes() const {
  std::string notes;
  const int64_t rows = rows_per_step(*plan_);
  if (trains() && data_.samples() % rows != 0) {
    const bool pads = pads_last_batch(*plan_, options_);
    notes +=
        left_over(data_.samples() % rows, data_.samples(), "samples do not fill a step of", rows,
                  pads ? "filled up with rows that do not count (--last-batch=pad)"
                       : "dropped in each epoch (--last-batch=drop)");
  }
  const int64_t evaluated = count_evaluated(*plan_, eval_data_.samples());
  if (!options_.eval.empty() && evaluated < eval_data_.samples()) {
    notes += left_over(eval_data_.samples() - evaluated, eval_data_.samples(),
                       "evaluation samples do not fill a micro-batch of", plan_->micro_batch_rows,
                       "left out of the loss");
  }
  return notes;
}

std::string Inputs::digest() const {
  std::string text = "rows per step " + std::to_string(rows_per_step(*plan_));
  for (const plan::Axis& axis : plan_->mesh) text += " " + std::to_string(axis.size);
  for (const auto& [name, size] : plan_->dims) text += ", " + name + "=" + std::to_string(size);
  return text + ", samples " + std::to_string(data_.samples()) + ", evaluation samples " +
         std::to_string(eval_data_.samples());
}

}  // namespace sgtc::runtime
