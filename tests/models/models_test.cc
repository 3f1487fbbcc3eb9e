#include "models/models.h"

#include <cmath>

#include "models/inspect.h"
#include "onnx/checker.h"
#include "support/catch.h"

namespace sgtc::models {
namespace {

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
  CHECK_NOTHROW(onnx::checker::check_model(resnet({})));
  for (const int64_t opset : {17, 18, 20, 23}) {
    CHECK_NOTHROW(onnx::checker::check_model(llama({.layers = 1, .opset = opset})));
    CHECK_NOTHROW(onnx::checker::check_model(bert({.layers = 1, .opset = opset})));
    CHECK_NOTHROW(onnx::checker::check_model(bert({.layers = 1, .classes = 2, .opset = opset})));
    CHECK_NOTHROW(onnx::checker::check_model(vit({.layers = 1, .opset = opset})));
  }
}

TEST_CASE("the loss is the only scalar output") {
  for (const auto& model : {mlp({}), cnn({}), gpt2(tiny()), resnet({}), llama({}), bert({}),
                            bert({.classes = 2}), vit({})}) {
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
  CHECK(names(resnet({})) == std::vector<std::string>{"x", "labels"});
  CHECK(names(vit({})) == std::vector<std::string>{"x", "labels"});
  CHECK(names(llama({})) == std::vector<std::string>{"input_ids", "labels"});
  const std::vector<std::string> bert_inputs = {"input_ids", "attention_mask", "token_type_ids",
                                                "labels"};
  CHECK(names(bert({})) == bert_inputs);
  CHECK(names(bert({.classes = 2})) == bert_inputs);
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
  CHECK(parameter_counts(gpt2_presets(), gpt2) ==
        std::map<std::string, int64_t>{{"gpt2-124m", 124439808},
                                       {"gpt2-medium", 354823168},
                                       {"gpt2-large", 774030080},
                                       {"gpt2-xl", 1557611200}});
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
