#include <cmath>

#include "models/checks.h"
#include "models/models.h"
#include "support/diagnostics.h"

namespace sgtc::models {
namespace {

// Keeps the variance of activations through a Relu (He et al. 2015), or without one.
Initial fan_in(int64_t inputs, bool before_relu) {
  return Initial::normal(std::sqrt((before_relu ? 2.0f : 1.0f) / static_cast<float>(inputs)));
}

// A Gemm with a weight [outputs, inputs] and a bias.
std::string linear(ModelBuilder& model, const std::string& name, const std::string& x,
                   int64_t inputs, int64_t outputs, bool before_relu) {
  const std::string weight =
      model.weight(name + ".weight", {outputs, inputs}, fan_in(inputs, before_relu));
  const std::string bias = model.weight(name + ".bias", {outputs}, Initial::constant(0));
  return model.add("Gemm", name, {x, weight, bias}, {{"transB", int64_t{1}}});
}

// The last layer, the loss and the outputs.
void classify(ModelBuilder& model, const std::string& x, int64_t inputs, const Dim& batch,
              int64_t classes) {
  const std::string logits = linear(model, "logits", x, inputs, classes, false);
  const std::string labels = model.input("labels", onnx::TensorProto::INT64, {batch});
  model.add("SoftmaxCrossEntropyLoss", "loss", {logits, labels});
  model.output("loss", {});
  model.output("logits", {batch, classes});
}

// Conv, BatchNormalization, Relu and MaxPool: half the size afterwards.
std::string convolution_block(ModelBuilder& model, const std::string& prefix, std::string x,
                              int64_t inputs, int64_t outputs) {
  const std::string weight =
      model.weight(prefix + ".conv.weight", {outputs, inputs, 3, 3}, fan_in(inputs * 9, true));
  x = model.add(
      "Conv", prefix + ".conv", {x, weight},
      {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const std::string norm = prefix + ".bn";
  const std::string scale = model.weight(norm + ".weight", {outputs}, Initial::constant(1));
  const std::string bias = model.weight(norm + ".bias", {outputs}, Initial::constant(0));
  const std::string mean = model.weight(norm + ".running_mean", {outputs}, Initial::constant(0));
  const std::string variance = model.weight(norm + ".running_var", {outputs}, Initial::constant(1));
  x = model.add("BatchNormalization", norm, {x, scale, bias, mean, variance},
                {{"epsilon", 1e-5f}, {"momentum", 0.9f}, {"training_mode", int64_t{1}}}, 3);
  x = model.add("Relu", prefix + ".relu", {x});
  return model.add(
      "MaxPool", prefix + ".pool", {x},
      {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
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
    x = linear(model, name, x, inputs, config.hidden[i], true);
    x = model.add("Relu", name + ".relu", {x});
    inputs = config.hidden[i];
  }
  classify(model, x, inputs, config.batch, config.classes);
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
  classify(model, x, inputs * size * size, config.batch, config.classes);
  return model.model();
}

}  // namespace sgtc::models
