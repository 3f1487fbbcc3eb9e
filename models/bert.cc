#include <limits>
#include <string>

#include "models/checks.h"
#include "models/classifier_layers.h"
#include "models/models.h"
#include "models/transformer_layers.h"

namespace sgtc::models {
namespace {

constexpr float kEpsilon = 1e-12f;
constexpr int64_t kIgnored = -100;  // the label of tokens that are not to be guessed
constexpr int64_t kSegments = 2;

void check(const BertConfig& config) {
  check_batch(config.batch);
  check_opset(config.opset);
  check_positive("--layers", config.layers);
  check_positive("--width", config.width);
  check_positive("--heads", config.heads);
  check_positive("--hidden", config.hidden);
  check_positive("--vocab", config.vocab);
  check_positive("--seq", config.seq);
  check_multiple("--width", config.width, config.heads, "heads");
  check_context(config.context, config.seq);
  check_dropout(config.dropout);
  if (config.classes != 0) check_positive("--classes", config.classes);
}

class Bert {
 public:
  explicit Bert(const BertConfig& config)
      : config_(config),
        model_("bert", config.opset),
        layers_(model_, config.seq, {config.heads, config.heads, config.width / config.heads},
                config.dropout) {}

  onnx::ModelProto build() {
    const std::vector<Dim> tokens{config_.batch, config_.seq};
    const std::string input_ids = model_.input("input_ids", onnx::TensorProto::INT64, tokens);
    const std::string seen = model_.input("attention_mask", onnx::TensorProto::INT64, tokens);
    const std::string segments = model_.input("token_type_ids", onnx::TensorProto::INT64, tokens);
    const std::string mask = additive_mask(seen);
    std::string x = embed("bert.embeddings", input_ids, segments);
    for (int64_t i = 0; i < config_.layers; ++i) {
      x = block("bert.encoder.layer." + std::to_string(i), x, mask);
    }
    if (config_.classes == 0) {
      guess_tokens(x, model_.input("labels", onnx::TensorProto::INT64, tokens));
    } else {
      classify_rows(x);
    }
    return model_.model();
  }

 private:
  std::string norm(const std::string& name, const std::string& x) {
    return layers_.layer_norm(name, x, config_.width, kEpsilon);
  }

  std::string linear(const std::string& name, const std::string& x) {
    return layers_.linear(name, x, config_.width, config_.width);
  }

  // 0 for a token that is there, the lowest number for padding: [batch, 1, 1, seq].
  std::string additive_mask(const std::string& seen) {
    const std::string axes = model_.integers("mask.axes", {1, 2});
    const std::string row = model_.add("Unsqueeze", "mask.row", {seen, axes});
    const std::string there =
        model_.add("Cast", "mask.there", {row}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
    const std::string padding =
        model_.add("Sub", "mask.padding", {model_.scalar("mask.one", 1), there});
    const std::string low = model_.scalar("mask.low", std::numeric_limits<float>::lowest());
    return model_.add("Mul", "mask", {padding, low});
  }

  std::string embed(const std::string& name, const std::string& input_ids,
                    const std::string& segments) {
    const std::string words =
        layers_.embedding(name + ".word_embeddings", input_ids, config_.vocab, config_.width);
    const std::string types =
        layers_.embedding(name + ".token_type_embeddings", segments, kSegments, config_.width);
    std::string places =
        layers_.weight(name + ".position_embeddings.weight", {config_.context, config_.width});
    if (config_.context > config_.seq) {
      const std::string begin = model_.integers("position.begin", {0});
      const std::string end = model_.integers("position.end", {config_.seq});
      places = model_.add("Slice", name + ".position_embeddings", {places, begin, end});
    }
    const std::string typed = model_.add("Add", name + ".typed", {words, types});
    const std::string placed = model_.add("Add", name + ".placed", {typed, places});
    return layers_.dropout(name + ".dropout", norm(name + ".LayerNorm", placed));
  }

  std::string block(const std::string& name, const std::string& x, const std::string& mask) {
    const std::string self = name + ".attention.self";
    const std::string q = linear(self + ".query", x);
    const std::string k = linear(self + ".key", x);
    const std::string v = linear(self + ".value", x);
    const std::string mixed = layers_.attention(self, q, k, v, {.mask = mask});
    const std::string attended =
        add_norm(name + ".attention.output", x, linear(name + ".attention.output.dense", mixed));
    const std::string hidden = layers_.gelu(
        name + ".intermediate.act",
        layers_.linear(name + ".intermediate.dense", attended, config_.width, config_.hidden));
    return add_norm(name + ".output", attended,
                    layers_.linear(name + ".output.dense", hidden, config_.hidden, config_.width));
  }

  // BERT normalises after it has added to the residual stream.
  std::string add_norm(const std::string& name, const std::string& x, const std::string& change) {
    const std::string sum =
        model_.add("Add", name + ".residual", {x, layers_.dropout(name + ".dropout", change)});
    return norm(name + ".LayerNorm", sum);
  }

  // The masked tokens, by products with the word embedding.
  void guess_tokens(const std::string& x, const std::string& labels) {
    const std::string name = "cls.predictions";
    const std::string moved = linear(name + ".transform.dense", x);
    const std::string guess =
        norm(name + ".transform.LayerNorm", layers_.gelu(name + ".transform.act", moved));
    const std::string bias = model_.weight(name + ".bias", {config_.vocab}, Initial::constant(0));
    layers_.token_loss(name, guess, config_.width, "bert.embeddings.word_embeddings.weight", bias,
                       labels, kIgnored);
  }

  // A class for each row, from its first token.
  void classify_rows(const std::string& x) {
    const std::string pooled =
        model_.add("Tanh", "bert.pooler",
                   {linear("bert.pooler.dense", first_token(model_, "bert.pooler.first", x))});
    classify(model_, "classifier", layers_.dropout("dropout", pooled), config_.width, config_.batch,
             config_.classes, Initial::normal(kInitialDeviation));
  }

  const BertConfig& config_;
  ModelBuilder model_;
  TransformerLayers layers_;
};

}  // namespace

onnx::ModelProto bert(const BertConfig& config) {
  check(config);
  return Bert(config).build();
}

const std::vector<Preset<BertConfig>>& bert_presets() {
  static const std::vector<Preset<BertConfig>> presets = {
      {"bert-base", {.layers = 12, .width = 768, .heads = 12, .hidden = 3072}},
      {"bert-large", {.layers = 24, .width = 1024, .heads = 16, .hidden = 4096}}};
  return presets;
}

}  // namespace sgtc::models
