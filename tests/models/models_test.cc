#include "models/models.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "onnx/checker.h"
#include "support/catch.h"
#include "support/diagnostics.h"

namespace sgtc::models {
namespace {

std::map<std::string, std::vector<int64_t>> weights_of(const onnx::ModelProto& model) {
  std::map<std::string, std::vector<int64_t>> weights;
  for (const auto& sparse : model.graph().sparse_initializer()) {
    weights[sparse.values().name()] = {sparse.dims().begin(), sparse.dims().end()};
  }
  return weights;
}

int64_t element_count(const onnx::ModelProto& model) {
  int64_t total = 0;
  for (const auto& [name, dims] : weights_of(model)) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    total += count;
  }
  return total;
}

const onnx::NodeProto& node_named(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& node : model.graph().node()) {
    if (node.name() == name) return node;
  }
  throw Error("no node is named " + name);
}

int count_ops(const onnx::ModelProto& model, const std::string& op) {
  const auto& nodes = model.graph().node();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [&op](const auto& node) { return node.op_type() == op; }));
}

/// The node of the initialization graph that fills a weight.
const onnx::NodeProto& initializer_of(const onnx::ModelProto& model, const std::string& weight) {
  const auto& info = model.training_info(0);
  for (const auto& binding : info.initialization_binding()) {
    if (binding.key() != weight) continue;
    for (const auto& node : info.initialization().node()) {
      if (node.output(0) == binding.value()) return node;
    }
  }
  throw Error("nothing initializes " + weight);
}

float real_attribute(const onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.f();
  }
  throw Error("no attribute " + name);
}

template <typename Config>
std::string error_of(onnx::ModelProto (*build)(const Config&), const Config& config) {
  try {
    build(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Gpt2Config tiny() {
  Gpt2Config config;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.vocab = 11;
  config.context = 8;
  config.seq = 8;
  return config;
}

TEST_CASE("each model passes ONNX's checker") {
  CHECK_NOTHROW(onnx::checker::check_model(mlp({})));
  CHECK_NOTHROW(onnx::checker::check_model(cnn({})));
  CHECK_NOTHROW(onnx::checker::check_model(gpt2(tiny())));
}

TEST_CASE("the loss is the only scalar output") {
  for (const auto& model : {mlp({}), cnn({}), gpt2(tiny())}) {
    REQUIRE(model.graph().output_size() >= 1);
    CHECK(model.graph().output(0).name() == "loss");
    CHECK(model.graph().output(0).type().tensor_type().shape().dim_size() == 0);
    for (int i = 1; i < model.graph().output_size(); ++i) {
      CHECK(model.graph().output(i).type().tensor_type().shape().dim_size() > 0);
    }
  }
}

TEST_CASE("inputs have their contracted names") {
  const auto names = [](const onnx::ModelProto& model) {
    std::vector<std::string> result;
    for (const auto& input : model.graph().input()) result.push_back(input.name());
    return result;
  };
  CHECK(names(mlp({})) == std::vector<std::string>{"x", "labels"});
  CHECK(names(cnn({})) == std::vector<std::string>{"x", "labels"});
  CHECK(names(gpt2(tiny())) == std::vector<std::string>{"input_ids", "labels"});
}

TEST_CASE("a named batch is symbolic") {
  MlpConfig config;
  config.batch = Dim("rows");
  const onnx::ModelProto named = mlp(config);
  CHECK(named.graph().input(0).type().tensor_type().shape().dim(0).dim_param() == "rows");
  config.batch = 5;
  const onnx::ModelProto sized = mlp(config);
  CHECK(sized.graph().input(0).type().tensor_type().shape().dim(0).dim_value() == 5);
}

TEST_CASE("an MLP has a Gemm per layer") {
  MlpConfig config;
  config.inputs = 4;
  config.hidden = {6, 5};
  config.classes = 3;
  const onnx::ModelProto model = mlp(config);
  CHECK(count_ops(model, "Gemm") == 3);
  CHECK(count_ops(model, "Relu") == 2);
  CHECK(weights_of(model).at("fc.1.weight") == std::vector<int64_t>{5, 6});
  CHECK(element_count(model) == (4 * 6 + 6) + (6 * 5 + 5) + (5 * 3 + 3));
  CHECK(real_attribute(initializer_of(model, "fc.1.weight"), "scale") ==
        Approx(std::sqrt(2.0 / 6)));
}

TEST_CASE("a CNN normalises over the batch and halves the image per block") {
  CnnConfig config;
  config.size = 11;
  config.widths = {4, 6};
  const onnx::ModelProto model = cnn(config);
  CHECK(node_named(model, "block.1.bn").output_size() == 3);
  CHECK(weights_of(model).at("logits.weight") == std::vector<int64_t>{10, 6 * 2 * 2});
  CHECK(initializer_of(model, "block.0.bn.running_var").op_type() == "ConstantOfShape");
}

TEST_CASE("zeros need no initialization") {
  CHECK_THROWS_AS(initializer_of(cnn({}), "block.0.bn.bias"), Error);
  CHECK_THROWS_AS(initializer_of(cnn({}), "block.0.bn.running_mean"), Error);
}

TEST_CASE("GPT-2 has the published number of parameters") {
  const auto parameters = [](const std::string& name) {
    for (const Gpt2Preset& preset : gpt2_presets()) {
      if (preset.name != name) continue;
      Gpt2Config config;
      config.layers = preset.layers;
      config.width = preset.width;
      config.heads = preset.heads;
      return element_count(gpt2(config));
    }
    throw Error("no preset " + name);
  };
  CHECK(parameters("gpt2-124m") == 124439808);
  CHECK(parameters("gpt2-medium") == 354823168);
  CHECK(parameters("gpt2-large") == 774030080);
  CHECK(parameters("gpt2-xl") == 1557611200);
}

TEST_CASE("GPT-2's file holds no weights") { CHECK(gpt2({}).ByteSizeLong() < 200000); }

TEST_CASE("GPT-2's residual projections begin smaller") {
  const onnx::ModelProto model = gpt2(tiny());
  CHECK(real_attribute(initializer_of(model, "h.1.mlp.c_fc.weight"), "scale") == Approx(0.02));
  CHECK(real_attribute(initializer_of(model, "h.1.mlp.c_proj.weight"), "scale") == Approx(0.01));
  CHECK(real_attribute(initializer_of(model, "h.0.attn.c_proj.weight"), "scale") == Approx(0.01));
}

TEST_CASE("GPT-2's output is tied to its embedding") {
  const onnx::ModelProto model = gpt2(tiny());
  CHECK(node_named(model, "wte").input(0) == "wte.weight");
  CHECK(node_named(model, "lm_head").input(1) == "wte.weight");
}

TEST_CASE("GPT-2 takes the first rows of a longer position embedding") {
  Gpt2Config config = tiny();
  CHECK(count_ops(gpt2(config), "Slice") == 0);
  config.context = 16;
  const onnx::ModelProto model = gpt2(config);
  CHECK(count_ops(model, "Slice") == 1);
  CHECK(weights_of(model).at("wpe.weight") == std::vector<int64_t>{16, 12});
}

TEST_CASE("GPT-2's dropouts are where the original has them") {
  Gpt2Config config = tiny();
  CHECK(count_ops(gpt2(config), "Dropout") == 0);
  config.dropout = 0.1f;
  CHECK(count_ops(gpt2(config), "Dropout") == 1 + 3 * 2);
}

TEST_CASE("sizes that make no model are refused") {
  Gpt2Config heads = tiny();
  heads.heads = 5;
  CHECK(error_of(gpt2, heads) == "--width: expected a multiple of the 5 heads, found 12");
  Gpt2Config context = tiny();
  context.context = 7;
  CHECK(error_of(gpt2, context) == "--context: expected at least the 8 tokens of --seq, found 7");
  Gpt2Config dropout = tiny();
  dropout.dropout = 1;
  CHECK(error_of(gpt2, dropout) == "--dropout: expected a number in [0, 1), found 1.000000");
  MlpConfig batch;
  batch.batch = 0;
  CHECK(error_of(mlp, batch) == "--batch: expected at least 1, found 0");
  CnnConfig widths;
  widths.widths = {1, 2, 3, 4};
  CHECK(error_of(cnn, widths) ==
        "--widths: 4 blocks halve images of size 8 to nothing; give fewer widths or a larger "
        "--size");
}

}  // namespace
}  // namespace sgtc::models
