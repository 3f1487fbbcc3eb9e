#include <string>

#include "models/checks.h"
#include "models/models.h"
#include "models/transformer_layers.h"
#include "support/diagnostics.h"

namespace sgtc::models {
namespace {

void check(const LlamaConfig& config) {
  check_batch(config.batch);
  check_opset(config.opset);
  check_positive("--layers", config.layers);
  check_positive("--width", config.width);
  check_positive("--heads", config.heads);
  check_positive("--kv-heads", config.kv_heads);
  check_positive("--hidden", config.hidden);
  check_positive("--vocab", config.vocab);
  check_positive("--seq", config.seq);
  check_multiple("--width", config.width, config.heads, "heads");
  check_multiple("--heads", config.heads, config.kv_heads, "heads of --kv-heads");
  if (config.width / config.heads % 2 != 0) {
    throw Error("--width: expected heads of an even size, since their halves turn, found " +
                std::to_string(config.width / config.heads));
  }
}

class Llama {
 public:
  explicit Llama(const LlamaConfig& config)
      : config_(config),
        depth_(config.width / config.heads),
        model_("llama", config.opset),
        layers_(model_, config.seq, {config.heads, config.kv_heads, depth_}) {}

  onnx::ModelProto build() {
    const std::vector<Dim> tokens{config_.batch, config_.seq};
    const std::string input_ids = model_.input("input_ids", onnx::TensorProto::INT64, tokens);
    const std::string labels = model_.input("labels", onnx::TensorProto::INT64, tokens);
    layers_.rotate({config_.rope_base, config_.rope_factor}, input_ids);
    std::string x =
        layers_.embedding("model.embed_tokens", input_ids, config_.vocab, config_.width);
    for (int64_t i = 0; i < config_.layers; ++i) x = block("model.layers." + std::to_string(i), x);
    std::string head = "model.embed_tokens.weight";
    if (!config_.tied) head = layers_.weight("lm_head.weight", {config_.vocab, config_.width});
    layers_.token_loss("lm_head", norm("model.norm", x), config_.width, head, "", labels);
    return model_.model();
  }

 private:
  std::string norm(const std::string& name, const std::string& x) {
    return layers_.rms_norm(name, x, config_.width, config_.epsilon);
  }

  std::string linear(const std::string& name, const std::string& x, int64_t inputs,
                     int64_t outputs) {
    return layers_.linear(name, x, inputs, outputs, false);
  }

  std::string block(const std::string& name, std::string x) {
    const std::string attended = attention(name + ".self_attn", norm(name + ".input_layernorm", x));
    x = model_.add("Add", name + ".residual_1", {x, attended});
    const std::string fed =
        feed_forward(name + ".mlp", norm(name + ".post_attention_layernorm", x));
    return model_.add("Add", name + ".residual_2", {x, fed});
  }

  std::string attention(const std::string& name, const std::string& x) {
    const int64_t width = config_.width, shared = config_.kv_heads * depth_;
    const std::string q = linear(name + ".q_proj", x, width, width);
    const std::string k = linear(name + ".k_proj", x, width, shared);
    const std::string v = linear(name + ".v_proj", x, width, shared);
    const std::string mixed = layers_.attention(name, q, k, v, {.causal = true});
    return linear(name + ".o_proj", mixed, width, width);
  }

  // SwiGLU: down(silu(gate(x)) · up(x)), silu(y) = y·sigmoid(y).
  std::string feed_forward(const std::string& name, const std::string& x) {
    const std::string gate = linear(name + ".gate_proj", x, config_.width, config_.hidden);
    const std::string opened = model_.add("Sigmoid", name + ".sigmoid", {gate});
    const std::string silu = model_.add("Mul", name + ".silu", {gate, opened});
    const std::string up = linear(name + ".up_proj", x, config_.width, config_.hidden);
    const std::string product = model_.add("Mul", name + ".product", {silu, up});
    return linear(name + ".down_proj", product, config_.hidden, config_.width);
  }

  const LlamaConfig& config_;
  int64_t depth_;
  ModelBuilder model_;
  TransformerLayers layers_;
};

}  // namespace

onnx::ModelProto llama(const LlamaConfig& config) {
  check(config);
  return Llama(config).build();
}

const std::vector<Preset<LlamaConfig>>& llama_presets() {
  static const std::vector<Preset<LlamaConfig>> presets = {{"llama-1b",
                                                            {.layers = 16,
                                                             .width = 2048,
                                                             .heads = 32,
                                                             .kv_heads = 8,
                                                             .hidden = 8192,
                                                             .vocab = 128256,
                                                             .tied = true,
                                                             .rope_base = 500000,
                                                             .rope_factor = 32}},
                                                           {"llama-7b",
                                                            {.layers = 32,
                                                             .width = 4096,
                                                             .heads = 32,
                                                             .kv_heads = 32,
                                                             .hidden = 11008,
                                                             .vocab = 32000,
                                                             .tied = false,
                                                             .rope_base = 10000,
                                                             .rope_factor = 1}},
                                                           {"llama-8b",
                                                            {.layers = 32,
                                                             .width = 4096,
                                                             .heads = 32,
                                                             .kv_heads = 8,
                                                             .hidden = 14336,
                                                             .vocab = 128256,
                                                             .tied = false,
                                                             .rope_base = 500000,
                                                             .rope_factor = 1}},
                                                           {"llama-70b",
                                                            {.layers = 80,
                                                             .width = 8192,
                                                             .heads = 64,
                                                             .kv_heads = 8,
                                                             .hidden = 28672,
                                                             .vocab = 128256,
                                                             .tied = false,
                                                             .rope_base = 500000,
                                                             .rope_factor = 1}}};
  return presets;
}

}  // namespace sgtc::models
