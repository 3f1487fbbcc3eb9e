// The optimizer that the command line and ONNX Runtime's files ask for.
#pragma once

#include <memory>
#include <string>

#include "autodiff/optimizer.h"
#include "driver/options.h"
#include "import/model.h"
#include "support/diagnostics.h"

namespace sgtc {

/// From `--optimizer` and its options, or from the graph that `--ort-optimizer` names. Adam goes on
/// from the moments of `checkpoint`, which may be null. Throws Error for files that cannot be used.
OptimizerOptions choose_optimizer(const Options& options,
                                  const std::shared_ptr<const OrtCheckpoint>& checkpoint);

/// Errors for optimizer options beside a training algorithm of the model, which brings its own.
void check_optimizer(const Options& options, const OnnxModel& model, Diagnostics& diagnostics);

/// What plans call the optimizer: "sgd", "adam", "adamw", or "training_info" for the model's own.
std::string optimizer_name(const OptimizerOptions& optimizer, const OnnxModel& model);

}  // namespace sgtc
