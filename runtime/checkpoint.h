// Checkpoints: DIR/step_0000120/ with
//
//   model.safetensors      parameters, frozen parameters and statistics
//   optimizer.safetensors  moments
//   state.json             step, seed, data position and fingerprints
//   manifest.json          size and SHA-256 of the other files
//
// A checkpoint is written into a temporary folder beside it, file by file, each synced, the
// manifest last; then the folder is synced, renamed and its parent synced. A crash at any point
// leaves either the new folder whole or none, and never touches an older one: those are removed
// only after the new one is committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "failure.h"
#include "progress.h"
#include "safetensors.h"
#include "states.h"

namespace sgtc::runtime {

struct Checkpoint {
  std::string folder;
  Progress progress;
  std::string model_fingerprint;
  SafetensorsFile model;
  SafetensorsFile optimizer;
};

/// What is the same in all checkpoints of a run.
struct CheckpointWriter {
  std::string root;
  int64_t keep = 2;  // newest ones, at least 1
  std::string model_fingerprint;
  std::string program_fingerprint;

  /// Commits a checkpoint of `progress.step`, then removes the oldest beyond `keep`.
  MaybeFailure write(const Progress& progress, const TensorMap& model,
                     const TensorMap& optimizer) const;
};

/// Opens one step folder and checks every file against the manifest.
MaybeFailure open_checkpoint(const std::string& folder, Checkpoint& checkpoint);

/// The newest whole checkpoint of `path`, which is a root or one step folder; broken ones are
/// warned of and passed over. Nothing if there are none at all; dies, naming them, if all are
/// broken.
std::optional<Checkpoint> find_checkpoint(const std::string& path);

/// The step of the newest folder of a root that has a checkpoint's name; -1 if there is none.
int64_t newest_step(const std::string& root);

}  // namespace sgtc::runtime
