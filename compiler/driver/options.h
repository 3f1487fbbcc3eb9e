// The command line of sgtc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/emitter.h"

namespace sgtc {

/// What `--emit` may name, with the file to write it to ("" or "-": standard output; executables
/// go to `output`).
struct EmitRequest {
  std::string what;
  std::string file;
};

struct Options {
  std::string model;
  std::string output;  // -o; empty: no executable unless nothing is emitted
  std::string mesh = "1x1";
  std::string schedule = "auto";  // gpipe or 1f1b
  std::string shard = "none";     // or optimizer
  std::string target = "cpu";
  std::string cpu = "x86-64-v3";
  std::string ptxas;     // path, or none; empty: searched
  std::string hardware;  // a preset or a profile; empty: the target's preset
  std::string loss;
  std::string optimizer = "adamw";
  std::vector<double> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  double weight_decay = -1;  // negative: the optimizer's default
  double momentum = 0;
  bool nesterov = false;
  double clip_norm = 0;
  bool decay_exclude_1d = false;
  std::vector<std::string> optimizer_options;  // those that were given, but for --clip-norm
  std::string ort_checkpoint;
  std::string ort_optimizer;
  std::vector<std::string> train;
  std::vector<std::string> freeze;
  std::map<std::string, int64_t> padding_index;  // rows without gradient by tensor
  std::vector<std::vector<std::pair<std::string, int64_t>>> dims;  // one map per plan
  int64_t micro_batches = 1;
  std::string loss_average = "exact";
  std::string last_batch = "drop";  // drop or pad
  int64_t max_tensors = kMaxTensors;
  std::string precision = "fp32";
  int64_t memory = 0;                    // bytes of each rank's arena; 0: no limit
  std::string recompute = "auto";        // auto, none or full
  int64_t row_chunks = 0;                // 0: chosen; 1: none
  std::string prepack_weights = "auto";  // auto or none
  std::vector<EmitRequest> emit;
  std::string simulate;  // where the timeline goes; "-": nowhere, the report alone; empty: neither
  std::string stop_after;
  std::set<std::string> print_after;
  std::string dump_dir;
  std::string on_unsupported = "error";  // error or fallback
  bool lint = false;                     // stop after the checks of the model and its gradients
  bool time_passes = false;
  bool json_errors = false;
  std::string color = "auto";
  int jobs = 0;  // 0: one per CPU
};

/// Parses the command line. Returns nothing when sgtc should exit at once with `*exit_code`
/// (help, version, usage errors: printed here).
std::optional<Options> parse_options(int argc, const char* const* argv, int* exit_code);

}  // namespace sgtc
