// The forward pass over all rows of a data set: its loss, or outputs written to files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data_set.h"
#include "options.h"
#include "session.h"

namespace sgtc::runtime {

class Evaluator {
 public:
  /// Both must outlive this.
  Evaluator(Session& session, const DataSet& data);

  /// The sum of the plan's loss terms, numerators and denominators each added in double over all
  /// rows of whole micro-batches. Nothing if a stop was requested meanwhile.
  std::optional<double> loss(const StepControl& control);

  /// Rows that `loss` leaves out: those of a last micro-batch that is not full.
  int64_t dropped_rows() const;

  /// Writes outputs for all rows; a last micro-batch that is not full is filled up with copies of
  /// the last row. Dies for an output that the program does not have or that has no rows.
  void predict(const StepControl& control, const std::vector<NamedFile>& outputs);

 private:
  void load(int64_t first_row);
  int64_t rows_per_pass() const;

  Session& session_;
  const DataSet& data_;
  Feeder feeder_;
};

/// Dies unless every output is one that `Evaluator::predict` can write.
void check_predictions(const plan::Plan& plan, const std::vector<NamedFile>& outputs);

}  // namespace sgtc::runtime
