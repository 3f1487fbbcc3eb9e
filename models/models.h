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

/// A ResNet (He et al. 2016) as torchvision has it, on images `x` [batch, channels, size, size]
/// with `labels` [batch]; further output `logits`. Stages of blocks of two 3×3 convolutions, or of
/// bottlenecks of 1×1, 3×3 and 1×1, whose 3×3 convolution halves the image; each stage has twice
/// the channels of the one before, the first `width`.
struct ResnetConfig {
  std::vector<int64_t> blocks = {2, 2, 2, 2};
  bool bottleneck = false;
  int64_t width = 64;
  int64_t channels = 3;
  int64_t size = 224;
  int64_t classes = 1000;
  Dim batch = 1;
};
onnx::ModelProto resnet(const ResnetConfig& config);

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
  int64_t opset = kOldestOpset;
};
onnx::ModelProto gpt2(const Gpt2Config& config);

/// Llama (Touvron et al. 2023) and its successors: RMS norm before each sublayer, rotary positions,
/// heads of keys that several heads of queries share, SwiGLU, no biases. Inputs and names of
/// weights as for GPT-2, the names those of LlamaForCausalLM.
struct LlamaConfig {
  int64_t layers = 16;
  int64_t width = 2048;
  int64_t heads = 32;
  int64_t kv_heads = 8;
  int64_t hidden = 8192;
  int64_t vocab = 128256;
  int64_t seq = 1024;
  Dim batch = 1;
  bool tied = true;           // the output's weight is the embedding's
  double rope_base = 500000;  // of `Rotation`
  double rope_factor = 32;
  float epsilon = 1e-5f;
  int64_t opset = kOldestOpset;
};
onnx::ModelProto llama(const LlamaConfig& config);

/// BERT (Devlin et al. 2019): layer norm after each sublayer, GELU by erf, padding masked by
/// `attention_mask`, which is 1 for tokens and 0 for padding. Inputs `input_ids`, `attention_mask`,
/// `token_type_ids` (0 or 1) are [batch, seq]. Without classes it guesses masked tokens, `labels`
/// [batch, seq] are −100 where there is nothing to guess; with classes it sorts rows, `labels` are
/// [batch] and `logits` is a further output. Weights are named as in BertForMaskedLM and
/// BertForSequenceClassification.
struct BertConfig {
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t hidden = 3072;
  int64_t vocab = 30522;
  int64_t context = 512;  // rows of the position embedding; at least seq
  int64_t seq = 512;
  int64_t classes = 0;
  Dim batch = 1;
  float dropout = 0;
  int64_t opset = kOldestOpset;
};
onnx::ModelProto bert(const BertConfig& config);

/// A vision transformer (Dosovitskiy et al. 2021) on images `x` [batch, channels, size, size] with
/// `labels` [batch]; further output `logits`. Patches become tokens by a convolution, a class token
/// comes before them. Weights are named as in ViTForImageClassification.
struct VitConfig {
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t hidden = 3072;
  int64_t patch = 16;
  int64_t channels = 3;
  int64_t size = 224;
  int64_t classes = 1000;
  Dim batch = 1;
  float dropout = 0;
  int64_t opset = kOldestOpset;
};
onnx::ModelProto vit(const VitConfig& config);

/// A published size of a model.
template <typename Config>
struct Preset {
  std::string_view name;
  Config config;
};
const std::vector<Preset<ResnetConfig>>& resnet_presets();  // resnet18, 34, 50, 101, 152
const std::vector<Preset<Gpt2Config>>& gpt2_presets();      // gpt2-124m, -medium, -large, -xl
const std::vector<Preset<LlamaConfig>>& llama_presets();  // llama-1b (3.2), -7b (2), -8b, -70b (3)
const std::vector<Preset<BertConfig>>& bert_presets();    // bert-base, -large
const std::vector<Preset<VitConfig>>& vit_presets();      // vit-s16, -b16, -l16

}  // namespace sgtc::models
