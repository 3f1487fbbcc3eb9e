#include <cmath>
#include <string>

#include "models/checks.h"
#include "models/models.h"
#include "models/transformer_layers.h"

namespace sgtc::models {
namespace {

constexpr float kEpsilon = 1e-5f;

void check(const Gpt2Config& config) {
  check_batch(config.batch);
  check_opset(config.opset);
  check_positive("--layers", config.layers);
  check_positive("--width", config.width);
  check_positive("--heads", config.heads);
  check_positive("--vocab", config.vocab);
  check_positive("--seq", config.seq);
  check_multiple("--width", config.width, config.heads, "heads");
  check_context(config.context, config.seq);
  check_dropout(config.dropout);
}

class Gpt2 {
 public:
  explicit Gpt2(const Gpt2Config& config)
      : config_(config),
        model_("gpt2", config.opset),
        layers_(model_, config.seq, {config.heads, config.heads, config.width / config.heads},
                config.dropout) {}

  onnx::ModelProto build() {
    const std::vector<Dim> tokens{config_.batch, config_.seq};
    const std::string input_ids = model_.input("input_ids", onnx::TensorProto::INT64, tokens);
    const std::string labels = model_.input("labels", onnx::TensorProto::INT64, tokens);
    std::string x = embed(input_ids);
    for (int64_t i = 0; i < config_.layers; ++i) x = block("h." + std::to_string(i), x);
    // The logits are products with the token embedding.
    layers_.token_loss("lm_head", norm("ln_f", x), config_.width, "wte.weight", "", labels);
    return model_.model();
  }

 private:
  std::string norm(const std::string& name, const std::string& x) {
    return layers_.layer_norm(name, x, config_.width, kEpsilon);
  }

  // x·weight + bias over the last dimension; the checkpoints' weights are [inputs, outputs].
  std::string linear(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs,
                     float deviation = kInitialDeviation) {
    const std::string weight =
        model_.weight(name + ".weight", {inputs, outputs}, Initial::normal(deviation));
    const std::string bias = model_.weight(name + ".bias", {outputs}, Initial::constant(0));
    const std::string product = model_.add("MatMul", name + ".matmul", {x, weight});
    return model_.add("Add", name, {product, bias});
  }

  // Each block adds to the residual stream twice; smaller weights keep its variance near one.
  float residual_deviation() const {
    return kInitialDeviation / std::sqrt(2 * static_cast<float>(config_.layers));
  }

  // Token plus position: [batch, seq, width].
  std::string embed(const std::string& input_ids) {
    const std::string token = layers_.embedding("wte", input_ids, config_.vocab, config_.width);
    std::string wpe = layers_.weight("wpe.weight", {config_.context, config_.width});
    if (config_.context > config_.seq) {
      const std::string begin = model_.integers("wpe.begin", {0});
      const std::string end = model_.integers("wpe.end", {config_.seq});
      wpe = model_.add("Slice", "wpe", {wpe, begin, end});
    }
    return layers_.dropout("drop", model_.add("Add", "embedding", {token, wpe}));
  }

  std::string block(const std::string& h, std::string x) {
    const std::string attended = attention(h + ".attn", norm(h + ".ln_1", x));
    x = model_.add("Add", h + ".residual_1", {x, attended});
    return model_.add("Add", h + ".residual_2",
                      {x, feed_forward(h + ".mlp", norm(h + ".ln_2", x))});
  }

  std::string attention(const std::string& name, const std::string& x) {
    const int64_t width = config_.width;
    const std::string all = linear(name + ".c_attn", x, width, 3 * width);
    const std::string q = model_.split(name + ".split", all, 3);
    const std::string mixed = layers_.attention(name, q, q + ".1", q + ".2", {.causal = true});
    return layers_.dropout(name + ".resid_dropout",
                           linear(name + ".c_proj", mixed, width, width, residual_deviation()));
  }

  std::string feed_forward(const std::string& name, const std::string& x) {
    const int64_t width = config_.width;
    const std::string hidden =
        layers_.gelu(name + ".act", linear(name + ".c_fc", x, width, 4 * width), true);
    return layers_.dropout(name + ".dropout", linear(name + ".c_proj", hidden, 4 * width, width,
                                                     residual_deviation()));
  }

  const Gpt2Config& config_;
  ModelBuilder model_;
  TransformerLayers layers_;
};

}  // namespace

onnx::ModelProto gpt2(const Gpt2Config& config) {
  check(config);
  return Gpt2(config).build();
}

const std::vector<Preset<Gpt2Config>>& gpt2_presets() {
  static const std::vector<Preset<Gpt2Config>> presets = {
      {"gpt2-124m", {.layers = 12, .width = 768, .heads = 12}},
      {"gpt2-medium", {.layers = 24, .width = 1024, .heads = 16}},
      {"gpt2-large", {.layers = 36, .width = 1280, .heads = 20}},
      {"gpt2-xl", {.layers = 48, .width = 1600, .heads = 25}}};
  return presets;
}

}  // namespace sgtc::models
