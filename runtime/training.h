// The loop over steps, with everything that happens between them.
//
// A device may be a step behind: a step is reported when it is finished, and whatever reads states
// or ends the run finishes all of them first.
//
// All ranks of a job run it alike: they take the same steps, and what one does between them depends
// on what all know. Only reporting is rank 0's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "batches.h"
#include "checkpoint.h"
#include "data_set.h"
#include "evaluation.h"
#include "launch/job.h"
#include "learning_rate.h"
#include "options.h"
#include "reporter.h"
#include "session.h"
#include "step_times.h"

namespace sgtc::runtime {

class Training {
 public:
  /// All must outlive this; `evaluator` may be null. Sets up states: initial values, --init, or a
  /// checkpoint to resume from, and opens the log.
  Training(const Program& program, Job& job, Session& session, const Options& options,
           const DataSet& data, Evaluator* evaluator);

  /// Runs up to --steps, then writes checkpoint and weights, and evaluates. Returns the exit code,
  /// the same on all ranks.
  int run();
  /// Runs one step without writing anything.
  void dry_run();

  StepControl control() const;

 private:
  bool reports() const { return job_.rank() == 0; }
  void resume();
  void load_initial_values() const;
  void start_step();
  StepReport finish_step();
  bool finish_steps(int64_t left);  // false: one was not finite and --on-nan says stop
  void stop_at_nan(const StepReport& report);
  bool is_due(int64_t every) const;
  bool after_step();  // false: a stop was requested
  int finish(bool stops);
  bool evaluate();  // likewise
  void compare_with_prediction();
  void write_checkpoint();
  void write_weights() const;

  Job& job_;
  Session& session_;
  const Options& options_;
  const DataSet& data_;
  Evaluator* evaluator_;
  Feeder feeder_;
  SampleOrder order_;
  LearningRate rate_;
  CheckpointWriter writer_;
  Reporter reporter_;
  Progress progress_;  // `step` and `position`: of the steps that were started
  struct Started {
    StepControl control;
    int64_t time = 0;     // nanoseconds
    int64_t samples = 0;  // without padding
  };
  std::array<Started, kMaxStepsAhead + 1> started_;  // oldest first
  int64_t started_count_ = 0;
  StepTimes times_;
  int64_t finish_time_ = 0;  // of the last step that was finished
  int64_t first_step_ = 1;
  int64_t start_time_ = 0;   // nanoseconds
  int64_t saved_step_ = -1;  // of the newest checkpoint in --checkpoint
  int64_t evaluated_step_ = -1;
};

}  // namespace sgtc::runtime
