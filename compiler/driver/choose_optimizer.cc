#include "driver/choose_optimizer.h"

#include "import/ort_optimizer.h"
#include "import/tensor.h"

namespace sgtc {
namespace {

OptimizerOptions from_command_line(const Options& options) {
  static const std::map<std::string, OptimizerOptions::Kind> kKinds = {
      {"sgd", OptimizerOptions::Kind::kSgd},
      {"adam", OptimizerOptions::Kind::kAdam},
      {"adamw", OptimizerOptions::Kind::kAdamW}};
  OptimizerOptions result;
  result.kind = kKinds.at(options.optimizer);
  result.momentum = options.momentum;
  result.nesterov = options.nesterov;
  result.beta1 = options.betas[0];
  result.beta2 = options.betas[1];
  result.epsilon = options.epsilon;
  result.weight_decay = options.weight_decay >= 0      ? options.weight_decay
                        : options.optimizer == "adamw" ? 0.01
                                                       : 0.0;
  result.decay_exclude_1d = options.decay_exclude_1d;
  result.clip_norm = options.clip_norm;
  return result;
}

OptimizerOptions from_file(const Options& options) {
  const OrtOptimizer file = read_ort_optimizer(options.ort_optimizer);
  if (file.clip_norm > 0 && options.clip_norm > 0) {
    throw Error("--clip-norm: " + options.ort_optimizer + " clips gradients itself, at " +
                std::to_string(file.clip_norm) + "; leave the option out");
  }
  OptimizerOptions result;
  result.kind = file.kind == OrtOptimizer::Kind::kSgd ? OptimizerOptions::Kind::kSgd
                                                      : OptimizerOptions::Kind::kAdamW;
  result.beta1 = file.alpha;
  result.beta2 = file.beta;
  result.epsilon = file.epsilon;
  result.weight_decay = file.weight_decay;
  result.correct_bias = file.correct_bias;
  if (file.corrects_rate) result.form = OptimizerOptions::AdamForm::kCorrectedRate;
  result.clip_norm = file.clip_norm > 0 ? file.clip_norm : options.clip_norm;
  return result;
}

void add_moments(const std::shared_ptr<const OrtCheckpoint>& checkpoint, OptimizerOptions& result) {
  result.applied_steps = checkpoint->steps;
  for (const auto& [name, tensors] : checkpoint->moments) {
    const std::string object = checkpoint->path + ": moments of \"" + name + "\"";
    if (tensors.size() != 2) {
      throw Error(object + ": expected 2 tensors for Adam, found " +
                  std::to_string(tensors.size()));
    }
    for (const auto& tensor : tensors) {
      try {
        result.moments[name].push_back(literal_of(tensor, ExternalData("."), checkpoint));
      } catch (const Error& error) {
        throw Error(object + ": " + error.what());
      }
    }
  }
}

}  // namespace

OptimizerOptions choose_optimizer(const Options& options,
                                  const std::shared_ptr<const OrtCheckpoint>& checkpoint) {
  OptimizerOptions result =
      options.ort_optimizer.empty() ? from_command_line(options) : from_file(options);
  const bool is_adam = result.kind != OptimizerOptions::Kind::kSgd;
  if (is_adam && checkpoint) add_moments(checkpoint, result);
  return result;
}

void check_optimizer(const Options& options, const OnnxModel& model, Diagnostics& diagnostics) {
  if (!model.algorithm().present()) return;
  std::vector<std::string> given = options.optimizer_options;
  if (!options.ort_optimizer.empty()) given.emplace_back("--ort-optimizer");
  if (options.shard != "none") given.emplace_back("--shard");
  for (const std::string& option : given) {
    diagnostics.error(option,
                      "the file has a training algorithm of its own (training_info), whose "
                      "optimizer is used; leave the option out");
  }
  diagnostics.checkpoint();
}

std::string optimizer_name(const OptimizerOptions& optimizer, const OnnxModel& model) {
  if (model.algorithm().present()) return "training_info";
  if (optimizer.kind == OptimizerOptions::Kind::kSgd) return "sgd";
  return optimizer.kind == OptimizerOptions::Kind::kAdam ? "adam" : "adamw";
}

}  // namespace sgtc
