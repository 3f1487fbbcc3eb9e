// Checkpoints: DIR/step_0000120/ with
//
//   model.safetensors      parameters, frozen parameters and statistics
//   optimizer.safetensors  moments
//   state.json             step, seed, data position and fingerprints
//   manifest.json          size and SHA-256 of the other files
//
// With P > 1 pipeline positions each writes files of its own, and indices say which file has a
// tensor, all named as Hugging Face's tools name them:
//
//   model-0000p-of-0000P.safetensors      model.safetensors.index.json
//   optimizer-0000p-of-0000P.safetensors  optimizer.safetensors.index.json
//
// Tensors are whole and have the names and shapes of the model, so a program for any mesh can go on
// from them. Moments that replicas share out are written by all of them into one file.
//
// A checkpoint is written into a temporary folder beside it. All ranks that have something to write
// sync their files; only when rank 0 has heard from all of them it writes indices, state and,
// last, the manifest; then the folder is synced, renamed and its parent synced. A crash of any rank
// at any point leaves either the new folder whole or none, and never touches an older one: those
// are removed only after the new one is committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "launch/job.h"
#include "progress.h"
#include "tensor_files.h"

namespace sgtc::runtime {

struct Checkpoint {
  std::string folder;
  Progress progress;
  std::string model_fingerprint;
  TensorFiles model;
  TensorFiles optimizer;
};

/// What one rank adds to a checkpoint.
struct CheckpointPart {
  int64_t position = 0;  // of `positions`
  int64_t positions = 1;
  bool writes = true;  // false: another replica of the position does
  TensorMap model;
  TensorMap optimizer;
  std::vector<TensorPart> parts;  // that all replicas write: of tensors of `optimizer` without data
};

/// What is the same in all checkpoints of a run.
struct CheckpointWriter {
  std::string root;
  int64_t keep = 2;  // newest ones, at least 1
  std::string model_fingerprint;
  std::string program_fingerprint;
  bool has_parts = false;  // on any rank

  /// Writes the part of this rank into a checkpoint of `progress.step`; a collective of the job.
  /// Rank 0 commits it, then removes the oldest beyond `keep`.
  MaybeFailure write(Job& job, const Progress& progress, const CheckpointPart& part) const;
};

/// Opens one step folder and checks every file against the manifest.
MaybeFailure open_checkpoint(const std::string& folder, Checkpoint& checkpoint);
/// Opens one step folder whose files were checked already, by another rank.
MaybeFailure open_checked_checkpoint(const std::string& folder, Checkpoint& checkpoint);

/// The newest whole checkpoint of `path`, which is a root or one step folder; broken ones are
/// warned of and passed over. Nothing if there are none at all; dies, naming them, if all are
/// broken.
std::optional<Checkpoint> find_checkpoint(const std::string& path);

/// The step of the newest folder of a root that has a checkpoint's name; -1 if there is none.
int64_t newest_step(const std::string& root);

}  // namespace sgtc::runtime
