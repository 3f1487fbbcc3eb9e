// The update phase of a training step: from gradients to new parameters.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autodiff/differentiate.h"
#include "ir/literal.h"

namespace sgtc {

struct OptimizerOptions {
  enum class Kind : uint8_t { kSgd, kAdam, kAdamW };
  /// Where Adam's corrections go: each moment is corrected and decay comes first, as PyTorch does
  /// it, or the learning rate is corrected and decay comes last, as Hugging Face's AdamW does it.
  enum class AdamForm : uint8_t { kCorrectedMoments, kCorrectedRate };
  Kind kind = Kind::kAdamW;
  double momentum = 0;    // SGD; 0: no buffer
  bool nesterov = false;  // SGD with momentum
  double beta1 = 0.9;     // Adam, AdamW
  double beta2 = 0.999;
  double epsilon = 1e-8;
  AdamForm form = AdamForm::kCorrectedMoments;
  bool correct_bias = true;
  double weight_decay = 0;
  bool decay_exclude_1d = false;  // no decay of biases and norm scales (rank below 2)
  double clip_norm = 0;           // largest global norm; 0: no clipping
  /// What Adam goes on from: steps that were applied, and each parameter's two moments by its name;
  /// other moments start at zero.
  int64_t applied_steps = 0;
  std::map<std::string, std::vector<LiteralPtr>> moments;
};

/// Appends the update phase. Definitions are PyTorch's:
/// - SGD: g += wd*p; with momentum b = momentum*b + g and g = b (Nesterov: g + momentum*b); then
///   p -= lr*g. The buffer starts at zero, which equals PyTorch's first step.
/// - Adam: g += wd*p; AdamW: p *= 1 - lr*wd. Then m = b1*m + (1-b1)*g, v = b2*v + (1-b2)*g*g,
///   p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps). The powers of the betas are f64 states,
///   so t counts applied steps.
/// - AdamForm::kCorrectedRate: p -= lr*sqrt(1-b2^t)/(1-b1^t) * m / (sqrt(v) + eps), and AdamW's
///   decay p -= lr*wd*p comes after it.
/// - Without `correct_bias` both 1-b^t are 1.
///
/// Gradients of f16 and bf16 parameters are widened to f32 first; moments are f32, or f64 for f64
/// parameters. Sum, norm, clipping and what happens to steps that are not finite: update_phase.h.
/// States: "<parameter>.momentum_buffer", "<parameter>.exp_avg", "<parameter>.exp_avg_sq",
/// "adam.beta1_power", "adam.beta2_power". The learning rate is the control "learning_rate".
/// Moments of a sharded parameter are the replica's shards.
/// Throws Error for moments that do not have the type of their parameter's update.
Graph add_optimizer(Differentiated differentiated, const OptimizerOptions& options);

/// Appends to a graph nodes of the update phase and updates, which are not guarded yet, given the
/// clipped gradient of each trained parameter in the dtype of the parameter.
using UpdateRule =
    std::function<Graph(Graph graph, const std::map<std::string, ValueId>& gradients)>;

/// The same with an optimizer that is not sgtc's own; no parameter is sharded.
Graph add_update(Differentiated differentiated, double clip_norm, const UpdateRule& rule);

}  // namespace sgtc
