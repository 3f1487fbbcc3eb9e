#include <cmath>

#include "models/inspect.h"
#include "support/catch.h"

namespace sgtc::models {
namespace {

LlamaConfig small_llama() {
  LlamaConfig config;
  config.layers = 2;
  config.width = 24;
  config.heads = 6;
  config.kv_heads = 2;
  config.hidden = 40;
  config.vocab = 31;
  config.seq = 8;
  return config;
}

TEST_CASE("Llamas have the published numbers of parameters") {
  CHECK(parameter_counts(llama_presets(), llama) ==
        std::map<std::string, int64_t>{{"llama-1b", 1235814400},
                                       {"llama-7b", 6738415616},
                                       {"llama-8b", 8030261248},
                                       {"llama-70b", 70553706496}});
}

TEST_CASE("BERTs have the published numbers of parameters") {
  CHECK(parameter_counts(bert_presets(), bert) ==
        std::map<std::string, int64_t>{{"bert-base", 109514298}, {"bert-large", 335174458}});
}

TEST_CASE("vision transformers have the published numbers of parameters") {
  CHECK(parameter_counts(vit_presets(), vit) ==
        std::map<std::string, int64_t>{
            {"vit-s16", 22050664}, {"vit-b16", 86567656}, {"vit-l16", 304326632}});
}

TEST_CASE("newer opsets have whole operators") {
  LlamaConfig config = small_llama();
  const onnx::ModelProto old = llama(config);
  CHECK(count_ops(old, "Softmax") == 2);
  CHECK(count_ops(old, "ReduceMean") == 5);
  CHECK(count_ops(old, "Attention") == 0);
  config.opset = 23;
  const onnx::ModelProto whole = llama(config);
  CHECK(count_ops(whole, "Softmax") == 0);
  CHECK(count_ops(whole, "Attention") == 2);
  CHECK(count_ops(whole, "RotaryEmbedding") == 4);
  CHECK(count_ops(whole, "RMSNormalization") == 5);
  CHECK(count_ops(bert({.layers = 3, .opset = 17}), "Erf") == 4);
  CHECK(count_ops(bert({.layers = 3, .opset = 20}), "Gelu") == 4);
  CHECK(count_ops(gpt2({.layers = 3, .opset = 20}), "Gelu") == 3);
}

TEST_CASE("attention whose weights drop out is spelled out") {
  Gpt2Config config;
  config.layers = 1;
  config.opset = 23;
  CHECK(count_ops(gpt2(config), "Attention") == 1);
  config.dropout = 0.1f;
  CHECK(count_ops(gpt2(config), "Attention") == 0);
}

TEST_CASE("heads of keys are shared") {
  const onnx::ModelProto model = llama(small_llama());
  CHECK(weights_of(model).at("model.layers.1.self_attn.k_proj.weight") ==
        std::vector<int64_t>{8, 24});
  CHECK(count_ops(model, "Expand") == 4);
  LlamaConfig single = small_llama();
  single.kv_heads = single.heads;
  CHECK(count_ops(llama(single), "Expand") == 0);
}

TEST_CASE("Llama's output is tied or has a weight of its own") {
  LlamaConfig config = small_llama();
  CHECK(node_named(llama(config), "lm_head").input(1) == "model.embed_tokens.weight");
  config.tied = false;
  CHECK(node_named(llama(config), "lm_head").input(1) == "lm_head.weight");
}

TEST_CASE("a factor slows the pairs that turn slowly") {
  LlamaConfig config = small_llama();
  config.width = 64;
  config.heads = config.kv_heads = 2;  // 16 pairs in a head
  const auto rates = [&config](double factor) {
    config.rope_factor = factor;
    const onnx::ModelProto model = llama(config);
    const auto& values = node_named(model, "rotary.rates").attribute(0).t().float_data();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> plain = rates(1), slowed = rates(32);
  REQUIRE(plain.size() == 16);
  CHECK(plain[0] == 1);
  CHECK(plain[1] == Approx(std::pow(500000.0, -1.0 / 16)));
  CHECK(slowed[0] == plain[0]);
  CHECK(slowed[15] == Approx(plain[15] / 32));
  // 8192 tokens turn pair 9 by 8192·500000^(−9/16)/2π = 0.8 and pair 8 by 1.8 whole turns.
  CHECK(slowed[9] == Approx(plain[9] / 32));
  const double kept = (8192 * static_cast<double>(plain[8]) / (2 * std::acos(-1.0)) - 1) / 3;
  CHECK(slowed[8] == Approx(plain[8] * (kept + (1 - kept) / 32)));
}

TEST_CASE("BERT ignores labels of -100 and adds a mask to the scores") {
  const onnx::ModelProto model = bert({.layers = 2});
  const auto& loss = node_named(model, "loss");
  REQUIRE(loss.attribute_size() == 1);
  CHECK(loss.attribute(0).i() == -100);
  CHECK(node_named(model, "bert.encoder.layer.1.attention.self.masked").input(1) == "mask");
  CHECK(node_named(bert({.layers = 2, .opset = 23}), "bert.encoder.layer.1.attention.self")
            .input(3) == "mask");
}

TEST_CASE("BERT for classes has a pooler and no guess of tokens") {
  const auto weights = weights_of(bert({.layers = 1, .classes = 3}));
  CHECK(weights.at("classifier.weight") == std::vector<int64_t>{3, 768});
  CHECK(weights.count("bert.pooler.dense.weight") == 1);
  CHECK(weights.count("cls.predictions.bias") == 0);
}

TEST_CASE("a vision transformer has a token for each patch and one for the class") {
  const VitConfig config = {.layers = 1, .patch = 8, .size = 32};
  CHECK(weights_of(vit(config)).at("vit.embeddings.position_embeddings") ==
        std::vector<int64_t>{1, 17, 768});
}

TEST_CASE("sizes that make no transformer are refused") {
  LlamaConfig shared = small_llama();
  shared.kv_heads = 4;
  CHECK(error_of(llama, shared) ==
        "--heads: expected a multiple of the 4 heads of --kv-heads, found 6");
  LlamaConfig odd = small_llama();
  odd.width = 18;
  CHECK(error_of(llama, odd) ==
        "--width: expected heads of an even size, since their halves turn, found 3");
  CHECK(error_of(vit, VitConfig{.size = 30}) ==
        "--size: expected a multiple of the 16 pixels of --patch, found 30");
  CHECK(error_of(bert, BertConfig{.opset = 16}) == "--opset: expected 17 to 23, found 16");
  CHECK(error_of(bert, BertConfig{.context = 8, .seq = 9}) ==
        "--context: expected at least the 9 tokens of --seq, found 8");
  CHECK(error_of(bert, BertConfig{.classes = -1}) == "--classes: expected at least 1, found -1");
}

}  // namespace
}  // namespace sgtc::models
