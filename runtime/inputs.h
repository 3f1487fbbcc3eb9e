// What a run reads, the plan that fits it, and mistakes that can be told before it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data_set.h"
#include "options.h"
#include "plan/format.h"

namespace sgtc::runtime {

/// Options that contradict each other end the process.
void check_options(const Options& options);

/// The data of a run of so many ranks. Files stay mapped as long as it exists.
class Inputs {
 public:
  /// Opens all files and chooses the plan. Both arguments must outlive this. Dies if something
  /// does not fit.
  Inputs(const std::vector<plan::Plan>& plans, int64_t ranks, const Options& options);

  const plan::Plan& plan() const { return *plan_; }
  const DataSet& data() const { return data_; }
  /// For evaluation: that of --eval, else the training data.
  const DataSet& eval_data() const { return options_.eval.empty() ? data_ : eval_data_; }

  /// Dies for what would stop the run later: too few samples, outputs that the program does not
  /// have, files that cannot be written.
  void check() const;
  /// What the user should know about the data: samples that are left out. May be empty; else
  /// lines.
  std::string notes() const;
  /// Differs between ranks that did not choose the same plan or do not have equally many samples.
  std::string digest() const;

 private:
  bool trains() const;
  void check_steps() const;
  void check_evaluation() const;
  void check_outputs() const;

  const Options& options_;
  std::vector<DataFile> files_;
  std::vector<DataFile> eval_files_;
  DataSet data_;
  DataSet eval_data_;
  const plan::Plan* plan_ = nullptr;
};

}  // namespace sgtc::runtime
