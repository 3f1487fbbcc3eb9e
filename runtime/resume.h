// Which checkpoint a run goes on from.
#pragma once

#include <cstdint>
#include <string>

#include "launch/job.h"
#include "options.h"

namespace sgtc::runtime {

struct ResumePoint {
  std::string folder;        // of one step; empty: the run begins afresh
  int64_t newest_step = -1;  // in the folder for new checkpoints; -1: it has none
};

/// What --resume and --checkpoint mean; a collective of the job. Rank 0 looks for the checkpoint,
/// checks it and decides for all. Dies, with a remedy, for a checkpoint of a model with another
/// fingerprint, and for a folder whose newer checkpoints the run would overwrite.
ResumePoint choose_resume_point(Job& job, const Options& options,
                                const std::string& model_fingerprint);

}  // namespace sgtc::runtime
