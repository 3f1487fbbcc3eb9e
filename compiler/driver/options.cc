#include "driver/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>

#include "driver/pipeline.h"
#include "ir/limits.h"
#include "support/version.h"

namespace sgtc {
namespace {

const std::vector<std::string> kEmittable = {"exe", "plan",    "plan-json", "html",
                                             "dot", "llvm-ir", "asm",       "ptx"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// "plan,asm=kernels.s" -> requests.
std::vector<EmitRequest> parse_emit(const std::string& text) {
  std::vector<EmitRequest> requests;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    EmitRequest request{part.substr(0, equals),
                        equals == std::string::npos ? "" : part.substr(equals + 1)};
    if (std::find(kEmittable.begin(), kEmittable.end(), request.what) == kEmittable.end()) {
      throw CLI::ValidationError("--emit", "'" + request.what + "' is unknown; expected one of " +
                                               CLI::detail::join(kEmittable, ", "));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

/// A tensor of one byte per element could have no larger dimension.
constexpr int64_t kMostSize = kMaxTensorBytes;

/// "B=4,7" adds one plan per value: the product of all `--dim` options.
void add_dim(const std::string& text,
             std::vector<std::vector<std::pair<std::string, int64_t>>>* plans) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw CLI::ValidationError("--dim", "expected NAME=VALUE, found '" + text + "'");
  }
  std::vector<std::vector<std::pair<std::string, int64_t>>> product;
  for (const auto& plan : *plans) {
    for (const std::string& value : split(text.substr(equals + 1), ',')) {
      int64_t size = 0;
      if (!CLI::detail::lexical_cast(value, size) || size < 1 || size > kMostSize) {
        throw CLI::ValidationError("--dim", "expected a size from 1 to " +
                                                std::to_string(kMostSize) + ", found '" + value +
                                                "' in '" + text + "'");
      }
      product.push_back(plan);
      product.back().emplace_back(text.substr(0, equals), size);
    }
  }
  if (product.empty()) {
    throw CLI::ValidationError("--dim", "expected NAME=VALUE, found '" + text + "'");
  }
  *plans = std::move(product);
}

/// "TENSOR=ROW"; names of tensors may contain "=".
void add_padding_index(const std::string& text, std::map<std::string, int64_t>* rows) {
  const size_t equals = text.rfind('=');
  int64_t row = -1;
  if (equals == std::string::npos || equals == 0 ||
      !CLI::detail::lexical_cast(text.substr(equals + 1), row) || row < 0) {
    throw CLI::ValidationError("--padding-index", "expected TENSOR=ROW, found '" + text + "'");
  }
  (*rows)[text.substr(0, equals)] = row;
}

/// "80GiB", "512MiB", "1.5GB" or a number of bytes.
int64_t parse_bytes(const std::string& text) {
  static const std::map<std::string, double> kUnits = {
      {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto unit = kUnits.find(text.substr(end));
  double number = 0;
  const bool is_number = end > 0 && CLI::detail::lexical_cast(text.substr(0, end), number);
  if (unit == kUnits.end() || !is_number || number * unit->second < 1 ||
      number * unit->second > 1e18) {
    throw CLI::ValidationError(
        "--memory", "expected a number of bytes such as 80GiB or 512MiB, found '" + text + "'");
  }
  return static_cast<int64_t>(number * unit->second);
}

std::string phases_footer() {
  std::string text = "Phases for --stop-after, in order:\n";
  for (const PhaseInfo& phase : phases()) {
    text += "  " + phase.name + std::string(14 - phase.name.size(), ' ') + phase.what + "\n";
  }
  text += "\nsgtc explain PLAN NODE says why a plan is as it is.\n";
  return text + "\nExit codes: 0 done, 1 diagnosed error, 2 usage, 101 internal error.";
}

void add_model_options(CLI::App& app, Options& options, std::vector<std::string>& dims,
                       std::vector<std::string>& padding) {
  app.add_option("MODEL", options.model, "ONNX training graph: the loss is one of its outputs");
  app.add_option("-o", options.output, "Executable to write");
  app.add_option("--mesh", options.mesh,
                 "pipeline x data, or named axes: 2x4, pp=2,dp=4; 2x4,1x4 compiles a plan for each")
      ->capture_default_str();
  app.add_option("--schedule", options.schedule, "Order of the micro-batches in a pipeline")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "gpipe", "1f1b"}));
  app.add_option("--shard", options.shard,
                 "What replicas do not hold whole: optimizer shares out its moments, so that each "
                 "updates its part of the parameters")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "optimizer"}));
  app.add_option("--loss", options.loss,
                 "Which output is the loss (default: the only scalar float output)");
  app.add_option("--train", options.train, "Train only the tensors that match (may repeat)")
      ->allow_extra_args(false);
  app.add_option("--freeze", options.freeze, "Do not train the tensors that match (may repeat)")
      ->allow_extra_args(false);
  app.add_option("--padding-index", padding,
                 "TENSOR=ROW: Gather passes that row no gradient, as PyTorch's padding_idx does; "
                 "files of torch.export record it (may repeat)")
      ->allow_extra_args(false);
  app.add_option("--dim", dims,
                 "NAME=VALUE binds a symbolic dimension; NAME=4,7 compiles a plan per size")
      ->allow_extra_args(false);
  app.add_option("--on-unsupported", options.on_unsupported,
                 "fallback runs some operators that have no kernel as slow compositions of others, "
                 "with a warning that names the cost")
      ->capture_default_str()
      ->check(CLI::IsMember({"error", "fallback"}));
  app.add_option("--max-tensors", options.max_tensors,
                 "Tensors that a model may have once its loops are unrolled and functions opened")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMaxTensors));
  app.add_option("--micro-batches", options.micro_batches, "Micro-batches per step and replica")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--loss-average", options.loss_average,
                 "exact, or mean-of-means for losses that are not sums over samples")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "mean-of-means"}));
  app.add_option(
         "--last-batch", options.last_batch,
         "pad gives rows weights, so that a last step of an epoch can be filled up with rows "
         "that do not count")
      ->capture_default_str()
      ->check(CLI::IsMember({"drop", "pad"}));
}

void add_artifact_options(CLI::App& app, Options& options) {
  app.add_option("--ort-checkpoint", options.ort_checkpoint,
                 "Values of the inputs that are parameters: ONNX Runtime's checkpoint file");
  app.add_option("--ort-optimizer", options.ort_optimizer,
                 "ONNX Runtime's optimizer graph, in place of --optimizer and its options");
}

void add_optimizer_options(CLI::App& app, Options& options) {
  app.add_option("--optimizer", options.optimizer,
                 "Files with a training algorithm (training_info) bring their own")
      ->capture_default_str()
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  app.add_option("--betas", options.betas, "Adam's decay rates")->expected(2)->delimiter(',');
  app.add_option("--eps", options.epsilon)->capture_default_str();
  app.add_option("--weight-decay", options.weight_decay,
                 "Default: 0.01 for adamw, 0 for the others");
  app.add_option("--momentum", options.momentum, "Of sgd")->capture_default_str();
  app.add_flag("--nesterov", options.nesterov, "Nesterov's form of momentum");
  app.add_option("--clip-norm", options.clip_norm, "Clip the global gradient norm; 0: do not")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--decay-exclude-1d", options.decay_exclude_1d,
               "No weight decay for parameters with fewer than two dimensions");
}

void add_target_options(CLI::App& app, Options& options) {
  app.add_option("--target", options.target, "What to compile for: cpu, or a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "sm_80", "sm_90a"}));
  app.add_option("--cpu", options.cpu, "x86-64-v3, x86-64-v4, or native: this machine's")
      ->capture_default_str();
  app.add_option("--ptxas", options.ptxas,
                 "NVIDIA's assembler, or none: programs for GPUs then carry PTX alone, which the "
                 "driver compiles at every start (default: searched in PATH, CUDA_HOME/bin and "
                 "/usr/local/cuda/bin)");
  app.add_option("--hardware", options.hardware,
                 "What predictions are for: cpu, a100, h100, h200, or a profile that ./train "
                 "--calibrate wrote (default: cpu, a100 or h200, by the target)");
  app.add_option("--precision", options.precision,
                 "bf16: products in bf16 with f32 sums, activations in bf16; states stay f32")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}));
}

void add_memory_options(CLI::App& app, Options& options, std::string& memory) {
  app.add_option("--memory", memory,
                 "The most that one rank's tensors may take, such as 80GiB: what does not fit is "
                 "computed again in the backward phase (default: no limit)");
  app.add_option("--recompute", options.recompute,
                 "auto: as little as --memory asks for; none; full: of each layer only what the "
                 "next one reads is kept")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "none", "full"}));
  app.add_option("--row-chunks", options.row_chunks,
                 "Compute scores of a vocabulary, their loss and its gradients in so many parts of "
                 "the batch, so that memory never holds all scores; auto: on CPUs where they are "
                 "large; none")
      ->default_str("auto")
      ->transform(CLI::Transformer(std::map<std::string, int64_t>{{"auto", 0}, {"none", 1}}))
      ->check(CLI::NonNegativeNumber);
  app.add_option("--prepack-weights", options.prepack_weights,
                 "auto: on CPUs and without --memory, keep for the whole step a packed copy of "
                 "weights that many small products read, such as those of recurrent layers; none")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "none"}));
}

void add_output_options(CLI::App& app, Options& options, std::vector<std::string>& emit,
                        std::string& error_format) {
  app.add_option("--emit", emit,
                 "Comma-separated " + CLI::detail::join(kEmittable, ", ") + "; each may have =FILE")
      ->allow_extra_args(false);
  // parse_options rewrites --emit-plan, whose value must be attached; this line is for --help.
  app.add_flag_callback("--emit-plan", [] {}, "Print the plan; --emit-plan=FILE writes it");
  app.add_flag("--simulate{-}", options.simulate,
               "Simulate a step and print a report; --simulate=TRACE.json writes its timeline, for "
               "chrome://tracing");
  std::vector<std::string> names;
  for (const PhaseInfo& phase : phases()) names.push_back(phase.name);
  app.add_flag("--lint", options.lint,
               "Check what the model's exporter may have lost for training, and write nothing");
  app.add_option("--stop-after", options.stop_after)->check(CLI::IsMember(names));
  app.add_option("--print-after", options.print_after, "Print the graph after a pass, or `all`")
      ->allow_extra_args(false);
  app.add_option("--dump-dir", options.dump_dir, "Write the graph after every pass to a folder");
  app.add_flag("--time-passes", options.time_passes, "Print the time of each pass");
  app.add_option("--error-format", error_format)->check(CLI::IsMember({"human", "json"}));
  app.add_option("--color", options.color)
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("-j", options.jobs, "Threads of the compiler (default: one per CPU)")
      ->check(CLI::Range(1, 1024));
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// Words that no option took: the first unknown option with the most similar known one.
void check_words(const CLI::App& app, const Options& options) {
  for (const std::string& word : app.remaining()) {
    if (word.rfind('-', 0) != 0) {
      throw CLI::ValidationError(
          word, "one model is compiled at a time; " + options.model + " was given already");
    }
    const std::string name = word.substr(0, word.find('='));
    std::string closest;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& known : option->get_lnames()) {
        const std::string candidate = "--" + known;
        if (closest.empty() || edit_distance(name, candidate) < edit_distance(name, closest)) {
          closest = candidate;
        }
      }
    }
    throw CLI::ValidationError(name, "unknown option; did you mean " + closest + "?");
  }
  if (options.model.empty()) throw CLI::RequiredError("MODEL, an ONNX training graph,");
}

/// The options that choose or shape the optimizer, of those that were given.
std::vector<std::string> given_optimizer_options(const CLI::App& app) {
  std::vector<std::string> given;
  for (const char* name : {"--optimizer", "--betas", "--eps", "--weight-decay", "--momentum",
                           "--nesterov", "--decay-exclude-1d"}) {
    if (app.get_option(name)->count() > 0) given.emplace_back(name);
  }
  return given;
}

void check_combinations(const Options& options) {
  if (!options.ort_optimizer.empty() && !options.optimizer_options.empty()) {
    throw CLI::ValidationError(options.optimizer_options.front(),
                               "the optimizer is that of --ort-optimizer; leave one of them out");
  }
  if (options.nesterov && options.momentum == 0) {
    throw CLI::ValidationError("--nesterov", "needs --momentum");
  }
  const bool writes = !options.output.empty() || !options.emit.empty();
  if (options.lint && (writes || !options.stop_after.empty() || !options.simulate.empty())) {
    throw CLI::ValidationError("--lint",
                               "writes nothing; leave out -o, --emit, --simulate and --stop-after");
  }
  if (options.last_batch == "pad" && options.loss_average != "exact") {
    throw CLI::ValidationError("--last-batch=pad",
                               "a mean of means has no weights of rows; use --loss-average=exact");
  }
  if (options.momentum != 0 && options.optimizer != "sgd") {
    throw CLI::ValidationError("--momentum",
                               "belongs to --optimizer sgd, found " + options.optimizer);
  }
}

/// Turns `--emit-plan[=FILE]` into `--emit plan[=FILE]`.
std::vector<std::string> normalised_arguments(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word == "--emit-plan")
      word = "--emit=plan";
    else if (word.rfind("--emit-plan=", 0) == 0)
      word = "--emit=plan=" + word.substr(12);
    words.push_back(std::move(word));
  }
  return words;  // CLI11 takes them last first
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, int* exit_code) {
  Options options;
  std::vector<std::string> dims, padding, emit;
  std::string error_format = "human";
  std::string memory;
  CLI::App app("Compiles an ONNX training graph for a device mesh into one executable.", "sgtc");
  app.set_version_flag("--version", std::string("sgtc ") + kVersion);
  app.footer(phases_footer());
  add_model_options(app, options, dims, padding);
  add_optimizer_options(app, options);
  add_artifact_options(app, options);
  add_target_options(app, options);
  add_memory_options(app, options, memory);
  add_output_options(app, options, emit, error_format);
  try {
    app.allow_extras();
    app.parse(normalised_arguments(argc, argv));
    check_words(app, options);
    options.dims = {{}};
    for (const std::string& dim : dims) add_dim(dim, &options.dims);
    for (const std::string& row : padding) add_padding_index(row, &options.padding_index);
    if (!memory.empty()) options.memory = parse_bytes(memory);
    for (const std::string& list : emit) {
      for (EmitRequest& request : parse_emit(list)) options.emit.push_back(std::move(request));
    }
    options.optimizer_options = given_optimizer_options(app);
    check_combinations(options);
    if (options.target != "cpu" && app.get_option("--cpu")->count() > 0) {
      throw CLI::ValidationError("--cpu", "belongs to --target cpu, found " + options.target);
    }
    if (options.target == "cpu" && !options.ptxas.empty()) {
      throw CLI::ValidationError("--ptxas", "belongs to targets that are GPUs, found cpu");
    }
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
    return std::nullopt;
  }
  // Both checks are over when gradients exist.
  if (options.lint) options.stop_after = "autodiff";
  options.json_errors = error_format == "json";
  if (options.output.empty() && options.emit.empty() && options.simulate.empty() &&
      options.stop_after.empty()) {
    options.output = "train";
  }
  return options;
}

}  // namespace sgtc
