#include "models/classifier_layers.h"

#include <cmath>

namespace sgtc::models {
namespace {

// Attributes of a window; those that ONNX assumes are left out.
std::vector<Attribute> attributes_of(const Window& window) {
  std::vector<Attribute> attributes = {
      {"kernel_shape", std::vector<int64_t>{window.size, window.size}}};
  if (window.pad != 0) attributes.push_back({"pads", std::vector<int64_t>(4, window.pad)});
  if (window.stride != 1) {
    attributes.push_back({"strides", std::vector<int64_t>{window.stride, window.stride}});
  }
  return attributes;
}

}  // namespace

Initial variance_of(int64_t count, bool before_relu) {
  return Initial::normal(std::sqrt((before_relu ? 2.0f : 1.0f) / static_cast<float>(count)));
}

std::string gemm(ModelBuilder& model, const std::string& name, const std::string& x, int64_t inputs,
                 int64_t outputs, Initial initial) {
  const std::string weight = model.weight(name + ".weight", {outputs, inputs}, initial);
  const std::string bias = model.weight(name + ".bias", {outputs}, Initial::constant(0));
  return model.add("Gemm", name, {x, weight, bias}, {{"transB", int64_t{1}}});
}

std::string convolution(ModelBuilder& model, const std::string& name, const std::string& x,
                        int64_t inputs, int64_t outputs, const Window& window, Initial initial) {
  const std::string weight =
      model.weight(name + ".weight", {outputs, inputs, window.size, window.size}, initial);
  return model.add("Conv", name, {x, weight}, attributes_of(window));
}

std::string batch_norm(ModelBuilder& model, const std::string& name, const std::string& x,
                       int64_t channels) {
  const std::string scale = model.weight(name + ".weight", {channels}, Initial::constant(1));
  const std::string bias = model.weight(name + ".bias", {channels}, Initial::constant(0));
  const std::string mean = model.weight(name + ".running_mean", {channels}, Initial::constant(0));
  const std::string variance =
      model.weight(name + ".running_var", {channels}, Initial::constant(1));
  return model.add("BatchNormalization", name, {x, scale, bias, mean, variance},
                   {{"epsilon", 1e-5f}, {"momentum", 0.9f}, {"training_mode", int64_t{1}}}, 3);
}

std::string max_pool(ModelBuilder& model, const std::string& name, const std::string& x,
                     const Window& window) {
  return model.add("MaxPool", name, {x}, attributes_of(window));
}

std::string first_token(ModelBuilder& model, const std::string& name, const std::string& x) {
  const std::string index = model.integers("token.first", {0});
  const std::string axis = model.integers("token.axis", {1});
  const std::string token =
      model.add("Gather", name + ".token", {x, index}, {{"axis", int64_t{1}}});
  return model.add("Squeeze", name, {token, axis});
}

void classify(ModelBuilder& model, const std::string& name, const std::string& x, int64_t inputs,
              const Dim& batch, int64_t classes, Initial initial) {
  const std::string scores = gemm(model, name, x, inputs, classes, initial);
  const std::string logits = name == "logits" ? scores : model.add("Identity", "logits", {scores});
  const std::string labels = model.input("labels", onnx::TensorProto::INT64, {batch});
  model.add("SoftmaxCrossEntropyLoss", "loss", {logits, labels});
  model.output("loss", {});
  model.output("logits", {batch, classes});
}

}  // namespace sgtc::models
