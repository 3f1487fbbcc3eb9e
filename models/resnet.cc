#include <string>

#include "models/checks.h"
#include "models/classifier_layers.h"
#include "models/models.h"

namespace sgtc::models {
namespace {

constexpr int64_t kExpansion = 4;  // outputs of a bottleneck for each channel of its middle

void check(const ResnetConfig& config) {
  check_batch(config.batch);
  check_positive("--channels", config.channels);
  check_positive("--size", config.size);
  check_positive("--width", config.width);
  check_positive("--classes", config.classes);
  for (const int64_t count : config.blocks) check_positive("--blocks", count);
}

class Resnet {
 public:
  explicit Resnet(const ResnetConfig& config) : config_(config), model_("resnet") {}

  onnx::ModelProto build() {
    std::string x = model_.input("x", onnx::TensorProto::FLOAT,
                                 {config_.batch, config_.channels, config_.size, config_.size});
    x = normalized("", "1", x, config_.channels, config_.width, {7, 2, 3});
    x = max_pool(model_, "maxpool", relu("relu", x), {3, 2, 1});
    int64_t inputs = config_.width, width = config_.width;
    for (size_t i = 0; i < config_.blocks.size(); ++i, width *= 2) {
      for (int64_t j = 0; j < config_.blocks[i]; ++j) {
        const std::string name = "layer" + std::to_string(i + 1) + "." + std::to_string(j) + ".";
        x = block(name, x, inputs, width, i > 0 && j == 0 ? 2 : 1);
        inputs = outputs_of(width);
      }
    }
    x = model_.add("Flatten", "flatten", {model_.add("GlobalAveragePool", "avgpool", {x})});
    classify(model_, "fc", x, inputs, config_.batch, config_.classes, variance_of(inputs, false));
    return model_.model();
  }

 private:
  int64_t outputs_of(int64_t width) const {
    return config_.bottleneck ? width * kExpansion : width;
  }

  std::string relu(const std::string& name, const std::string& x) {
    return model_.add("Relu", name, {x});
  }

  // Convolution conv<number> and normalization bn<number>. Its weights keep the variance of
  // gradients: a sum over what goes out.
  std::string normalized(const std::string& prefix, const std::string& number, const std::string& x,
                         int64_t inputs, int64_t outputs, const Window& window) {
    const Initial initial = variance_of(outputs * window.size * window.size, true);
    const std::string convolved =
        convolution(model_, prefix + "conv" + number, x, inputs, outputs, window, initial);
    return batch_norm(model_, prefix + "bn" + number, convolved, outputs);
  }

  std::string block(const std::string& name, const std::string& x, int64_t inputs, int64_t width,
                    int64_t stride) {
    const int64_t outputs = outputs_of(width);
    std::string y = x;
    if (config_.bottleneck) {
      y = relu(name + "relu1", normalized(name, "1", y, inputs, width, {}));
      y = relu(name + "relu2", normalized(name, "2", y, width, width, {3, stride, 1}));
      y = normalized(name, "3", y, width, outputs, {});
    } else {
      y = relu(name + "relu1", normalized(name, "1", y, inputs, width, {3, stride, 1}));
      y = normalized(name, "2", y, width, width, {3, 1, 1});
    }
    const std::string way = shortcut(name + "downsample", x, inputs, outputs, stride);
    return relu(name + "relu", model_.add("Add", name + "residual", {y, way}));
  }

  // x itself where it has the shape of the block's result.
  std::string shortcut(const std::string& name, const std::string& x, int64_t inputs,
                       int64_t outputs, int64_t stride) {
    if (inputs == outputs && stride == 1) return x;
    const std::string convolved = convolution(model_, name + ".0", x, inputs, outputs,
                                              {1, stride, 0}, variance_of(outputs, true));
    return batch_norm(model_, name + ".1", convolved, outputs);
  }

  const ResnetConfig& config_;
  ModelBuilder model_;
};

}  // namespace

onnx::ModelProto resnet(const ResnetConfig& config) {
  check(config);
  return Resnet(config).build();
}

const std::vector<Preset<ResnetConfig>>& resnet_presets() {
  static const std::vector<Preset<ResnetConfig>> presets = {
      {"resnet18", {.blocks = {2, 2, 2, 2}, .bottleneck = false}},
      {"resnet34", {.blocks = {3, 4, 6, 3}, .bottleneck = false}},
      {"resnet50", {.blocks = {3, 4, 6, 3}, .bottleneck = true}},
      {"resnet101", {.blocks = {3, 4, 23, 3}, .bottleneck = true}},
      {"resnet152", {.blocks = {3, 8, 36, 3}, .bottleneck = true}}};
  return presets;
}

}  // namespace sgtc::models
