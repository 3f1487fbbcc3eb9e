#include "fuzz/compile_model.h"

#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "driver/pipeline.h"
#include "onnx/defs/parser.h"

namespace sgtc::fuzz {
namespace fs = std::filesystem;
namespace {

// Enough for most small models, so that an input takes milliseconds; and in one of so many rounds
// through the choices of options enough for each kind of model, and few enough that an input takes
// seconds at most.
constexpr int64_t kFewTensors = 200;
constexpr int64_t kManyTensors = 20'000;
constexpr size_t kRounds = 4;

constexpr time_t kMostSeconds = 10;

// What a checkpoint of ONNX Runtime is compiled with.
constexpr const char* kTrainedModel =
    "<ir_version: 8, opset_import: [\"\": 17]> test (float[3, 2] x, float[2] w, float[1] frozen) "
    "=> (float l) { a = Mul(x, w) b = Add(a, frozen) l = ReduceSum <keepdims = 0>(b) }";
constexpr std::string_view kCheckpointMark = "ODTC";  // behind the first four bytes

/// Limits the time of a processor while it lives.
class TimeLimit {
 public:
  TimeLimit() { set(kMostSeconds); }
  ~TimeLimit() { set(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static void set(time_t seconds) {
    const itimerval limit{{0, 0}, {seconds, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
  }
};

using Choice = void (*)(Options&);

constexpr std::array<Choice, 8> kChoices = {
    [](Options&) {},
    [](Options& options) {
      options.mesh = "2x2";
      options.micro_batches = 4;
    },
    [](Options& options) {
      options.micro_batches = 2;
      options.last_batch = "pad";
      options.optimizer = "adam";
    },
    [](Options& options) {
      options.target = "sm_90a";
      options.precision = "bf16";
      options.optimizer = "adamw";
    },
    [](Options& options) {
      options.target = "sm_80";
      options.clip_norm = 1;
    },
    [](Options& options) {
      options.mesh = "1x2";
      options.micro_batches = 2;
      options.loss_average = "mean-of-means";
      options.momentum = 0.9;
    },
    [](Options& options) {
      options.mesh = "3x1";
      options.micro_batches = 3;
      options.schedule = "gpipe";
      options.on_unsupported = "fallback";
    },
    [](Options& options) { options.precision = "bf16"; },
};

std::string percent_of(int64_t part, int64_t whole) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%lld (%.1f%%)", static_cast<long long>(part),
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text.data();
}

bool is_checkpoint(std::span<const uint8_t> file) {
  return file.size() >= 8 &&
         std::equal(kCheckpointMark.begin(), kCheckpointMark.end(), file.begin() + 4);
}

// False when the model is refused.
bool compiles(const Options& options) {
  const TimeLimit limit;
  Diagnostics diagnostics;
  try {
    compile(options, diagnostics);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void Counts::add(Reached reached) {
  ++(reached == Reached::kRefused ? refused : reached == Reached::kAutodiff ? autodiff : plan);
}

double Counts::share_of_autodiff() const {
  return total() == 0 ? 0 : static_cast<double>(autodiff + plan) / static_cast<double>(total());
}

std::string Counts::text() const {
  if (total() == 0) return "no inputs";
  return std::to_string(total()) + " inputs: " + std::to_string(refused) +
         " refused by the import, " + percent_of(autodiff + plan, total()) + " reached autodiff, " +
         percent_of(plan, total()) + " a plan";
}

ModelCompiler::ModelCompiler() {
  std::string name = (fs::temp_directory_path() / "sgtc-fuzz-XXXXXX").string();
  if (!mkdtemp(name.data())) throw Error("cannot make a folder in " + name);
  folder_ = name;
  onnx::ModelProto trained;
  if (!onnx::OnnxParser::Parse(trained, kTrainedModel).IsOK()) throw Error("not a model");
  std::ofstream file(trained_model(), std::ios::binary);
  if (!trained.SerializeToOstream(&file)) throw Error("cannot write " + trained_model());
}

ModelCompiler::~ModelCompiler() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Reached ModelCompiler::compile(std::span<const uint8_t> file) const {
  Options options = write(file);
  if (compiles(options)) return Reached::kPlan;
  options.stop_after = "import";
  return compiles(options) ? Reached::kAutodiff : Reached::kRefused;
}

bool ModelCompiler::plans(std::span<const uint8_t> file) const { return compiles(write(file)); }

// Writes the file and returns the options to compile it with, up to the plan.
Options ModelCompiler::write(std::span<const uint8_t> file) const {
  std::ofstream(path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  onnx::ModelProto model;
  Options options;
  if (is_checkpoint(file)) return options_for_checkpoint();
  if (model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    options = options_for(model);
  } else {
    options.dims = {{}};
  }
  options.model = path();
  options.stop_after = "plan";
  return options;
}

Options ModelCompiler::options_for_checkpoint() const {
  Options options;
  options.jobs = 1;
  options.dims = {{}};
  options.model = trained_model();
  options.ort_checkpoint = path();
  options.optimizer = "adam";  // whose moments a checkpoint may have
  options.stop_after = "plan";
  return options;
}

Options options_for(const onnx::ModelProto& model) {
  Options options;
  options.jobs = 1;
  const auto version = static_cast<uint64_t>(model.model_version());
  const bool has_room = version / kChoices.size() % kRounds == kRounds - 1;
  options.max_tensors = has_room ? kManyTensors : kFewTensors;
  options.optimizer = "sgd";  // the smallest update
  kChoices[version % kChoices.size()](options);
  std::set<std::string> names;
  for (const auto& input : model.graph().input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) names.insert(dim.dim_param());
    }
  }
  options.dims = {{}};
  for (const std::string& name : names) options.dims[0].emplace_back(name, 3);
  return options;
}

int64_t option_choices() { return static_cast<int64_t>(kRounds * kChoices.size()); }

}  // namespace sgtc::fuzz
