// The models that sgtc-model writes: ONNX training graphs with the loss inside.
//
// The only scalar output is `loss`, the mean cross-entropy. All sizes must be positive; a
// combination that makes no model throws Error.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/model_builder.h"

namespace sgtc::models {

/// Layers of Gemm and Relu on `x` [batch, inputs] with `labels` [batch]; further output `logits`.
struct MlpConfig {
  Dim batch = 32;
  int64_t inputs = 64;
  std::vector<int64_t> hidden = {128, 64};
  int64_t classes = 10;
};
onnx::ModelProto mlp(const MlpConfig& config);

/// Blocks of 3×3 Conv, BatchNormalization, Relu and 2×2 MaxPool, then Gemm, on images `x`
/// [batch, channels, size, size] with `labels` [batch]; further output `logits`.
struct CnnConfig {
  Dim batch = 32;
  int64_t channels = 1;
  int64_t size = 8;
  std::vector<int64_t> widths = {16, 32};
  int64_t classes = 10;
};
onnx::ModelProto cnn(const CnnConfig& config);

/// GPT-2 (Radford et al. 2019): layer norm before each sublayer, learned positions, GELU by tanh,
/// the embedding tied to the output. `input_ids` and `labels` are [batch, seq]; labels are the next
/// tokens. Weights carry the names of the published checkpoints, so `--init` reads those.
struct Gpt2Config {
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t vocab = 50257;
  int64_t context = 1024;  // rows of the position embedding; at least seq
  int64_t seq = 1024;
  Dim batch = 1;
  float dropout = 0;
};
onnx::ModelProto gpt2(const Gpt2Config& config);

/// The sizes of a published GPT-2: "gpt2-124m", "gpt2-medium", "gpt2-large" or "gpt2-xl".
struct Gpt2Preset {
  std::string_view name;
  int64_t layers, width, heads;
};
const std::vector<Gpt2Preset>& gpt2_presets();

}  // namespace sgtc::models
