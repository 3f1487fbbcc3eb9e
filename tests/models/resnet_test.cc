#include "models/inspect.h"
#include "support/catch.h"

namespace sgtc::models {
namespace {

TEST_CASE("ResNets have the published numbers of parameters") {
  CHECK(parameter_counts(resnet_presets(), resnet) ==
        std::map<std::string, int64_t>{{"resnet18", 11689512},
                                       {"resnet34", 21797672},
                                       {"resnet50", 25557032},
                                       {"resnet101", 44549160},
                                       {"resnet152", 60192808}});
}

TEST_CASE("a block's shortcut is its input where the shapes agree") {
  const ResnetConfig basic = {.blocks = {1, 1}, .bottleneck = false};
  const auto weights = weights_of(resnet(basic));
  CHECK(weights.count("layer1.0.downsample.0.weight") == 0);
  CHECK(weights.at("layer2.0.downsample.0.weight") == std::vector<int64_t>{128, 64, 1, 1});
  const ResnetConfig wide = {.blocks = {1}, .bottleneck = true};
  CHECK(weights_of(resnet(wide)).at("layer1.0.downsample.0.weight") ==
        std::vector<int64_t>{256, 64, 1, 1});
}

TEST_CASE("the 3x3 convolution of a bottleneck halves the image") {
  const onnx::ModelProto model = resnet({.blocks = {1, 1}, .bottleneck = true});
  const auto has_strides = [&model](const std::string& name) {
    const auto& attributes = node_named(model, name).attribute();
    return std::any_of(attributes.begin(), attributes.end(),
                       [](const auto& attribute) { return attribute.name() == "strides"; });
  };
  CHECK_FALSE(has_strides("layer2.0.conv1"));
  CHECK(has_strides("layer2.0.conv2"));
  CHECK_FALSE(has_strides("layer1.0.conv2"));
}

TEST_CASE("convolutions of a ResNet begin with the variance of gradients kept") {
  const onnx::ModelProto model = resnet({});
  CHECK(real_attribute(initializer_of(model, "conv1.weight"), "scale") ==
        Approx(std::sqrt(2.0 / (64 * 49))));
}

TEST_CASE("a stage without blocks is refused") {
  CHECK(error_of(resnet, ResnetConfig{.blocks = {2, 0}}) ==
        "--blocks: expected at least 1, found 0");
}

}  // namespace
}  // namespace sgtc::models
