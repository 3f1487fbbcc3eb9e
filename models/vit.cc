#include <string>

#include "models/checks.h"
#include "models/classifier_layers.h"
#include "models/models.h"
#include "models/transformer_layers.h"

namespace sgtc::models {
namespace {

constexpr float kEpsilon = 1e-12f;

void check(const VitConfig& config) {
  check_batch(config.batch);
  check_opset(config.opset);
  check_positive("--layers", config.layers);
  check_positive("--width", config.width);
  check_positive("--heads", config.heads);
  check_positive("--hidden", config.hidden);
  check_positive("--channels", config.channels);
  check_positive("--size", config.size);
  check_positive("--patch", config.patch);
  check_positive("--classes", config.classes);
  check_multiple("--width", config.width, config.heads, "heads");
  check_multiple("--size", config.size, config.patch, "pixels of --patch");
  check_dropout(config.dropout);
}

// The patches of an image and the class token.
int64_t token_count(const VitConfig& config) {
  const int64_t side = config.size / config.patch;
  return side * side + 1;
}

class Vit {
 public:
  explicit Vit(const VitConfig& config)
      : config_(config),
        model_("vit", config.opset),
        layers_(model_, token_count(config),
                {config.heads, config.heads, config.width / config.heads}, config.dropout) {}

  onnx::ModelProto build() {
    const std::string image =
        model_.input("x", onnx::TensorProto::FLOAT,
                     {config_.batch, config_.channels, config_.size, config_.size});
    std::string x = embed("vit.embeddings", image);
    for (int64_t i = 0; i < config_.layers; ++i) {
      x = block("vit.encoder.layer." + std::to_string(i), x);
    }
    const std::string first = first_token(model_, "vit.first", norm("vit.layernorm", x));
    classify(model_, "classifier", first, config_.width, config_.batch, config_.classes,
             Initial::normal(kInitialDeviation));
    return model_.model();
  }

 private:
  std::string norm(const std::string& name, const std::string& x) {
    return layers_.layer_norm(name, x, config_.width, kEpsilon);
  }

  std::string linear(const std::string& name, const std::string& x) {
    return layers_.linear(name, x, config_.width, config_.width);
  }

  // The class token and the patches, plus their positions: [batch, tokens, width].
  std::string embed(const std::string& name, const std::string& image) {
    const std::string patches = this->patches(name + ".patch_embeddings", image);
    const std::string token = layers_.weight(name + ".cls_token", {1, 1, config_.width});
    const std::string shape = model_.add("Shape", name + ".shape", {image}, {{"end", int64_t{1}}});
    const std::string rest = model_.integers("token.shape", {1, 1});
    const std::string rows =
        model_.add("Concat", name + ".cls.shape", {shape, rest}, {{"axis", int64_t{0}}});
    const std::string copies = model_.add("Expand", name + ".cls", {token, rows});
    const std::string tokens =
        model_.add("Concat", name + ".tokens", {copies, patches}, {{"axis", int64_t{1}}});
    const std::string places =
        layers_.weight(name + ".position_embeddings", {1, token_count(config_), config_.width});
    return layers_.dropout(name + ".dropout",
                           model_.add("Add", name + ".placed", {tokens, places}));
  }

  // A convolution whose windows do not overlap: [batch, patches, width].
  std::string patches(const std::string& name, const std::string& image) {
    const std::string projection = name + ".projection";
    const std::string weight = layers_.weight(
        projection + ".weight", {config_.width, config_.channels, config_.patch, config_.patch});
    const std::string bias =
        model_.weight(projection + ".bias", {config_.width}, Initial::constant(0));
    const std::vector<int64_t> window{config_.patch, config_.patch};
    const std::string grid = model_.add("Conv", projection, {image, weight, bias},
                                        {{"kernel_shape", window}, {"strides", window}});
    const std::string line = model_.integers("patch.shape", {0, config_.width, -1});
    const std::string flat = model_.add("Reshape", name + ".flat", {grid, line});
    return model_.add("Transpose", name, {flat}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  }

  std::string block(const std::string& name, std::string x) {
    const std::string attended =
        attention(name + ".attention", norm(name + ".layernorm_before", x));
    x = model_.add("Add", name + ".residual_1", {x, attended});
    const std::string fed = feed_forward(name, norm(name + ".layernorm_after", x));
    return model_.add("Add", name + ".residual_2", {x, fed});
  }

  std::string attention(const std::string& name, const std::string& x) {
    const std::string self = name + ".attention";
    const std::string q = linear(self + ".query", x);
    const std::string k = linear(self + ".key", x);
    const std::string v = linear(self + ".value", x);
    return layers_.dropout(name + ".output.dropout",
                           linear(name + ".output.dense", layers_.attention(self, q, k, v, {})));
  }

  std::string feed_forward(const std::string& name, const std::string& x) {
    const std::string hidden = layers_.gelu(
        name + ".intermediate.act",
        layers_.linear(name + ".intermediate.dense", x, config_.width, config_.hidden));
    return layers_.dropout(name + ".output.dropout", layers_.linear(name + ".output.dense", hidden,
                                                                    config_.hidden, config_.width));
  }

  const VitConfig& config_;
  ModelBuilder model_;
  TransformerLayers layers_;
};

}  // namespace

onnx::ModelProto vit(const VitConfig& config) {
  check(config);
  return Vit(config).build();
}

const std::vector<Preset<VitConfig>>& vit_presets() {
  static const std::vector<Preset<VitConfig>> presets = {
      {"vit-s16", {.layers = 12, .width = 384, .heads = 6, .hidden = 1536, .patch = 16}},
      {"vit-b16", {.layers = 12, .width = 768, .heads = 12, .hidden = 3072, .patch = 16}},
      {"vit-l16", {.layers = 24, .width = 1024, .heads = 16, .hidden = 4096, .patch = 16}}};
  return presets;
}

}  // namespace sgtc::models
