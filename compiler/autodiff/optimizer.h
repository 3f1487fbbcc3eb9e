// The update phase of a training step: from gradients to new parameters.
#pragma once

#include "autodiff/differentiate.h"

namespace sgtc {

struct OptimizerOptions {
  enum class Kind : uint8_t { kSgd, kAdam, kAdamW };
  Kind kind = Kind::kAdamW;
  double momentum = 0;    // SGD; 0: no buffer
  bool nesterov = false;  // SGD with momentum
  double beta1 = 0.9;     // Adam, AdamW
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_exclude_1d = false;  // no decay of biases and norm scales (rank below 2)
  double clip_norm = 0;           // largest global norm; 0: no clipping
};

/// Appends the update phase. Definitions are PyTorch's:
/// - SGD: g += wd*p; with momentum b = momentum*b + g and g = b (Nesterov: g + momentum*b); then
///   p -= lr*g. The buffer starts at zero, which equals PyTorch's first step.
/// - Adam: g += wd*p; AdamW: p *= 1 - lr*wd. Then m = b1*m + (1-b1)*g, v = b2*v + (1-b2)*g*g,
///   p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps). The powers of the betas are f64 states,
///   so t counts applied steps.
/// - Clipping: g *= min(1, c / (norm + 1e-6)).
///
/// The uses of a parameter are added in their order. The global norm is the square root of the
/// sum, in parameter order and in f32, of each gradient's sum of squares. If the norm or the loss
/// is not finite, no state changes: every update, also those that the graph had before (BatchNorm
/// statistics), is where(finite, new, old).
///
/// Gradients of f16 and bf16 parameters are widened to f32 first; moments are f32, or f64 for f64
/// parameters. States: "<parameter>.momentum_buffer", "<parameter>.exp_avg",
/// "<parameter>.exp_avg_sq", "adam.beta1_power", "adam.beta2_power". Outputs: "grad_norm" f32
/// (before clipping) and "finite" bool. The learning rate is the control "learning_rate".
Graph add_optimizer(Differentiated differentiated, const OptimizerOptions& options);

}  // namespace sgtc
