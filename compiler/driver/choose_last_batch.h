// Whether rows get weights, so that the last step of an epoch can be padded.
#pragma once

#include "driver/options.h"
#include "import/model.h"
#include "passes/loss_terms.h"
#include "support/diagnostics.h"

namespace sgtc {

LastBatch last_batch(const Options& options);

/// Errors for padding with a file that computes gradients, or what its training algorithm reads, of
/// all rows of a step itself: weights do not reach these.
void check_last_batch(const Options& options, const OnnxModel& model, Diagnostics& diagnostics);

}  // namespace sgtc
