// What all ranks of a job must have been told alike.
#pragma once

#include "launch/job_options.h"
#include "options.h"

namespace sgtc::runtime {

/// The options that decide which steps a run takes and what ranks do together between them, as
/// names and values. Of paths only whether they were given: every host may have its own.
Agreement agreement_of(const Options& options);

}  // namespace sgtc::runtime
