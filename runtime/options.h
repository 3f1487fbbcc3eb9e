// The command line of a training program. One table in options.cc declares every option; parsing,
// the text of --help and suggestions for misspelt ones all come from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sgtc::runtime {

/// NAME=FILE, or X,Y=FILE for a token stream.
struct NamedFile {
  std::vector<std::string> names;
  std::string path;
};

struct Options {
  // Data.
  std::vector<NamedFile> data;
  std::vector<NamedFile> tokens;
  bool shuffle = false;
  std::string last_batch;  // drop | pad; empty: what the program was compiled for
  // Training.
  int64_t steps = -1;  // -1: not given
  double learning_rate = 1e-3;
  std::string rate_option;  // the last of --lr, --warmup and --decay that was given
  int64_t warmup = 0;
  std::string decay = "none";  // none | linear | cosine
  int64_t seed = 0;
  bool seed_given = false;
  std::string on_nan = "skip";  // skip | stop
  std::string init;
  // Evaluation.
  std::vector<NamedFile> eval;
  int64_t eval_every = 0;
  std::vector<NamedFile> predict;
  // Checkpoints.
  std::string checkpoint;
  int64_t save_every = 0;
  int64_t keep = 2;
  std::string resume;  // "", "auto" or a folder
  std::string save;
  // Reports.
  std::string log;
  std::string trace;
  bool quiet = false;
  // The run.
  std::map<std::string, int64_t> dims;
  std::string mesh;        // "2x4"; empty: by the number of ranks
  int64_t ranks = 0;       // 0: as many as the mesh has
  int64_t threads = 0;     // 0: from the environment
  int64_t rank = -1;       // -1: from the environment
  int64_t world_size = 0;  // likewise if 0
  std::string master;      // likewise if empty
  std::string secret_file;
  int64_t rendezvous_timeout = 60;  // seconds
  bool print_plan = false;
  bool dry_run = false;
  std::string calibrate;  // where the profile goes; implies dry_run
  bool version = false;
  bool help = false;
};

/// Parses the arguments behind the program's name. A mistake ends the process with exit code 2 and
/// a message that names the nearest option.
Options parse_options(int count, const char* const* arguments);

/// The text of --help, grouped. `program` is the name it was started by.
std::string help_text(const std::string& program);

}  // namespace sgtc::runtime
