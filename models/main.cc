// sgtc-model: writes weight-free ONNX training graphs.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "models/models.h"
#include "support/diagnostics.h"
#include "support/file.h"
#include "support/version.h"

namespace sgtc::models {
namespace {

constexpr int kDone = 0;
constexpr int kDiagnosed = 1;
constexpr int kUsage = 2;

/// What the command line chose.
struct Choice {
  std::string output;
  std::function<onnx::ModelProto()> build;
};

/// A size, or the name of a dimension.
Dim parse_batch(const std::string& text) {
  int64_t size = 0;
  if (CLI::detail::lexical_cast(text, size)) return size;
  return text;
}

/// Adds the subcommand of a model whose `config` is complete once all options are read.
template <typename Config>
CLI::App* add_model(CLI::App& app, Choice& choice, const std::string& name, const std::string& what,
                    const std::shared_ptr<Config>& config,
                    onnx::ModelProto (*build)(const Config&)) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("-o", choice.output, "ONNX file to write")->required();
  command
      ->add_option_function<std::string>(
          "--batch", [config](const std::string& text) { config->batch = parse_batch(text); },
          "Rows of a micro-batch: a size, or a name to bind by sgtc --dim NAME=SIZE")
      ->default_str(std::to_string(config->batch.size));
  command->callback(
      [&choice, config, build] { choice.build = [config, build] { return build(*config); }; });
  return command;
}

void add_size(CLI::App* command, const std::string& option, int64_t& size,
              const std::string& what) {
  command->add_option(option, size, what)->capture_default_str();
}

void add_mlp(CLI::App& app, Choice& choice) {
  const auto config = std::make_shared<MlpConfig>();
  CLI::App* command =
      add_model(app, choice, "mlp", "Layers of Gemm and Relu; inputs x, labels", config, mlp);
  add_size(command, "--inputs", config->inputs, "Features of x");
  command->add_option("--hidden", config->hidden, "Widths of the hidden layers, with commas")
      ->delimiter(',')
      ->capture_default_str();
  add_size(command, "--classes", config->classes, "Classes of the labels");
}

void add_cnn(CLI::App& app, Choice& choice) {
  const auto config = std::make_shared<CnnConfig>();
  CLI::App* command =
      add_model(app, choice, "cnn",
                "Blocks of Conv, BatchNormalization, Relu, MaxPool; inputs x, labels", config, cnn);
  add_size(command, "--channels", config->channels, "Channels of the images");
  add_size(command, "--size", config->size, "Height and width of the images");
  command->add_option("--widths", config->widths, "Channels of the blocks, with commas")
      ->delimiter(',')
      ->capture_default_str();
  add_size(command, "--classes", config->classes, "Classes of the labels");
}

void add_resnet(CLI::App& app, Choice& choice, const std::string& name,
                const ResnetConfig& preset) {
  const auto config = std::make_shared<ResnetConfig>(preset);
  CLI::App* command = add_model(app, choice, name, "ResNet; inputs x, labels", config, resnet);
  command->add_option("--blocks", config->blocks, "Blocks of the stages, with commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--bottleneck", config->bottleneck, "Blocks of three convolutions, not two")
      ->capture_default_str();
  add_size(command, "--width", config->width, "Channels of the first stage");
  add_size(command, "--channels", config->channels, "Channels of the images");
  add_size(command, "--size", config->size, "Height and width of the images");
  add_size(command, "--classes", config->classes, "Classes of the labels");
}

/// What all transformers have.
template <typename Config>
void add_transformer(CLI::App* command, Config& config) {
  add_size(command, "--layers", config.layers, "Blocks");
  add_size(command, "--width", config.width, "Width of the residual stream");
  add_size(command, "--heads", config.heads, "Attention heads");
  add_size(command, "--opset", config.opset,
           "Version of ONNX's operators: from 20 on Gelu, from 23 on RMSNormalization, "
           "RotaryEmbedding and Attention are one node each");
}

/// What transformers of texts have.
template <typename Config>
void add_text(CLI::App* command, Config& config) {
  add_size(command, "--vocab", config.vocab, "Rows of the token embedding");
  add_size(command, "--seq", config.seq, "Tokens of a row");
}

/// Rows of the position embedding: as many as published, or as a longer row needs.
template <typename Config>
void add_context(CLI::App* command, const std::shared_ptr<Config>& config) {
  const int64_t published = config->context;
  config->context = 0;
  command->add_option("--context", config->context, "Rows of the position embedding")
      ->default_str(std::to_string(published) + ", or --seq if that is more");
  command->parse_complete_callback([config, published] {
    if (config->context == 0) config->context = std::max(published, config->seq);
  });
}

template <typename Config>
void add_dropout(CLI::App* command, Config& config) {
  command->add_option("--dropout", config.dropout, "Rate of all dropouts")->capture_default_str();
}

void add_gpt2(CLI::App& app, Choice& choice, const std::string& name, const Gpt2Config& preset) {
  const auto config = std::make_shared<Gpt2Config>(preset);
  CLI::App* command = add_model(app, choice, name, "GPT-2; inputs input_ids, labels", config, gpt2);
  add_transformer(command, *config);
  add_text(command, *config);
  add_context(command, config);
  add_dropout(command, *config);
}

void add_llama(CLI::App& app, Choice& choice, const std::string& name, const LlamaConfig& preset) {
  const auto config = std::make_shared<LlamaConfig>(preset);
  CLI::App* command =
      add_model(app, choice, name, "Llama; inputs input_ids, labels", config, llama);
  add_transformer(command, *config);
  add_size(command, "--kv-heads", config->kv_heads, "Heads of keys and values");
  add_size(command, "--hidden", config->hidden, "Width between the gate and the way down");
  add_text(command, *config);
  command->add_option("--tied", config->tied, "The output's weight is the embedding's")
      ->capture_default_str();
  command->add_option("--rope-base", config->rope_base, "Base of the rotation's frequencies")
      ->capture_default_str();
  command->add_option("--rope-factor", config->rope_factor, "How much slower slow pairs turn")
      ->capture_default_str();
}

void add_bert(CLI::App& app, Choice& choice, const std::string& name, const BertConfig& preset) {
  const auto config = std::make_shared<BertConfig>(preset);
  CLI::App* command =
      add_model(app, choice, name, "BERT; inputs input_ids, attention_mask, token_type_ids, labels",
                config, bert);
  add_transformer(command, *config);
  add_size(command, "--hidden", config->hidden, "Width inside the feed-forward layers");
  add_text(command, *config);
  add_context(command, config);
  add_size(command, "--classes", config->classes, "Classes of rows; 0 guesses masked tokens");
  add_dropout(command, *config);
}

void add_vit(CLI::App& app, Choice& choice, const std::string& name, const VitConfig& preset) {
  const auto config = std::make_shared<VitConfig>(preset);
  CLI::App* command =
      add_model(app, choice, name, "Vision transformer; inputs x, labels", config, vit);
  add_transformer(command, *config);
  add_size(command, "--hidden", config->hidden, "Width inside the feed-forward layers");
  add_size(command, "--patch", config->patch, "Height and width of a patch");
  add_size(command, "--channels", config->channels, "Channels of the images");
  add_size(command, "--size", config->size, "Height and width of the images");
  add_size(command, "--classes", config->classes, "Classes of the labels");
  add_dropout(command, *config);
}

/// A family by its own name, with the first of its published sizes, and by that of each size.
template <typename Config>
void add_family(CLI::App& app, Choice& choice, const std::string& name,
                const std::vector<Preset<Config>>& presets,
                void (*add)(CLI::App&, Choice&, const std::string&, const Config&)) {
  add(app, choice, name, presets.front().config);
  for (const Preset<Config>& preset : presets) {
    add(app, choice, std::string(preset.name), preset.config);
  }
}

int write(const Choice& choice) {
  const onnx::ModelProto model = choice.build();
  std::string bytes;
  model.SerializeToString(&bytes);
  write_file(choice.output, bytes);
  return kDone;
}

int run(int argc, const char* const* argv) {
  Choice choice;
  CLI::App app(
      "Writes ONNX training graphs without weights: the loss is inside, and how the "
      "weights begin is in the training information.",
      "sgtc-model");
  app.set_version_flag("--version", std::string("sgtc-model ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Sizes of a model: sgtc-model MODEL --help.\n"
      "Exit codes: 0 done, 1 diagnosed error, 2 usage.");
  add_mlp(app, choice);
  add_cnn(app, choice);
  add_family(app, choice, "resnet", resnet_presets(), add_resnet);
  add_family(app, choice, "gpt2", gpt2_presets(), add_gpt2);
  add_family(app, choice, "llama", llama_presets(), add_llama);
  add_family(app, choice, "bert", bert_presets(), add_bert);
  add_family(app, choice, "vit", vit_presets(), add_vit);
  try {
    app.parse(argc, argv);
    return write(choice);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kDiagnosed;
  }
}

}  // namespace
}  // namespace sgtc::models

int main(int argc, char** argv) { return sgtc::models::run(argc, argv); }
