#include "models/checks.h"
#include "models/classifier_layers.h"
#include "models/models.h"
#include "support/diagnostics.h"

namespace sgtc::models {
namespace {

// Convolution, BatchNormalization, Relu and MaxPool: half the size afterwards.
std::string convolution_block(ModelBuilder& model, const std::string& prefix, std::string x,
                              int64_t inputs, int64_t outputs) {
  x = convolution(model, prefix + ".conv", x, inputs, outputs, {3, 1, 1},
                  variance_of(inputs * 9, true));
  x = batch_norm(model, prefix + ".bn", x, outputs);
  x = model.add("Relu", prefix + ".relu", {x});
  return max_pool(model, prefix + ".pool", x, {2, 2, 0});
}

}  // namespace

onnx::ModelProto mlp(const MlpConfig& config) {
  check_batch(config.batch);
  check_positive("--inputs", config.inputs);
  check_positive("--classes", config.classes);
  ModelBuilder model("mlp");
  std::string x = model.input("x", onnx::TensorProto::FLOAT, {config.batch, config.inputs});
  int64_t inputs = config.inputs;
  for (size_t i = 0; i < config.hidden.size(); ++i) {
    check_positive("--hidden", config.hidden[i]);
    const std::string name = "fc." + std::to_string(i);
    x = gemm(model, name, x, inputs, config.hidden[i], variance_of(inputs, true));
    x = model.add("Relu", name + ".relu", {x});
    inputs = config.hidden[i];
  }
  classify(model, "logits", x, inputs, config.batch, config.classes, variance_of(inputs, false));
  return model.model();
}

onnx::ModelProto cnn(const CnnConfig& config) {
  check_batch(config.batch);
  check_positive("--channels", config.channels);
  check_positive("--size", config.size);
  check_positive("--classes", config.classes);
  ModelBuilder model("cnn");
  std::string x = model.input("x", onnx::TensorProto::FLOAT,
                              {config.batch, config.channels, config.size, config.size});
  int64_t inputs = config.channels, size = config.size;
  for (size_t i = 0; i < config.widths.size(); ++i) {
    check_positive("--widths", config.widths[i]);
    if (size < 2) {
      throw Error("--widths: " + std::to_string(config.widths.size()) +
                  " blocks halve images of size " + std::to_string(config.size) +
                  " to nothing; give fewer widths or a larger --size");
    }
    x = convolution_block(model, "block." + std::to_string(i), x, inputs, config.widths[i]);
    inputs = config.widths[i];
    size /= 2;
  }
  x = model.add("Flatten", "flatten", {x});
  inputs *= size * size;
  classify(model, "logits", x, inputs, config.batch, config.classes, variance_of(inputs, false));
  return model.model();
}

}  // namespace sgtc::models
