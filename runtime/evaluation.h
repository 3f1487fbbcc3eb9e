// The forward pass over all rows of a data set: its loss, or outputs written to files.
//
// The replicas share the micro-batches: pass k takes the next (replicas * M) of them, and replica r
// the M from r * M on, as in a training step. All ranks run the same number of passes;
// micro-batches behind the last one repeat the last row and are not counted. Where the plan has
// weights of rows, the last one that counts may end in copies of weight 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data_set.h"
#include "joint_file.h"
#include "launch/job.h"
#include "options.h"
#include "session.h"

namespace sgtc::runtime {

/// Its functions are collectives of the job.
class Evaluator {
 public:
  /// All must outlive this.
  Evaluator(Job& job, Session& session, const DataSet& data);

  /// The sum of the plan's loss terms, numerators and denominators each added in double over all
  /// rows of count_evaluated, in their order whatever the mesh; on rank 0, elsewhere 0. Nothing, on
  /// all ranks, if a stop was requested meanwhile.
  std::optional<double> loss(const StepControl& control);

  /// Writes outputs for all rows; a last micro-batch that is not full is filled up with copies of
  /// the last row. Dies for an output that the program does not have or that has no rows.
  void predict(const StepControl& control, const std::vector<NamedFile>& outputs);

 private:
  int64_t micro_batches_per_pass() const;
  /// The first micro-batch of this rank in the pass that begins with `first`.
  int64_t own(int64_t first) const;
  void run_pass(int64_t first, const StepControl& control);
  std::string terms_of_pass(int64_t first, int64_t end) const;
  void write_pass(int64_t first, const plan::Result& result, JointFile& file) const;

  Job& job_;
  Session& session_;
  const DataSet& data_;
  Feeder feeder_;
  const int64_t replicas_;
};

/// How many of `samples` rows an evaluation's loss is of: all with weights of rows, else those of
/// whole micro-batches.
int64_t count_evaluated(const plan::Plan& plan, int64_t samples);

/// Dies unless every output is one that `Evaluator::predict` can write.
void check_predictions(const plan::Plan& plan, const std::vector<NamedFile>& outputs);

}  // namespace sgtc::runtime
