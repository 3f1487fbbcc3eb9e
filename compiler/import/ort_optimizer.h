// The optimizer that ONNX Runtime's training API keeps in a graph of its own.
#pragma once

#include <string>

namespace sgtc {

/// What the graph asks for, in ONNX Runtime's terms.
struct OrtOptimizer {
  enum class Kind { kSgd, kAdamW };
  Kind kind = Kind::kSgd;
  double alpha = 0.9;  // AdamW: decay rates of the moments
  double beta = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  /// AdamW: 1 corrects the learning rate and decays last, as Hugging Face does; 0 corrects the
  /// moments and decays first, as PyTorch does.
  bool corrects_rate = false;
  bool correct_bias = true;
  double clip_norm = 0;  // 0: no clipping
};

/// Reads an optimizer graph: one AdamWOptimizer or SGDOptimizerV2, and at most one
/// InplaceClipGradNorm before it. Throws Error naming the file and the node for anything else.
OrtOptimizer read_ort_optimizer(const std::string& path);

}  // namespace sgtc
