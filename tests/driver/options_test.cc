#include "driver/options.h"

#include <optional>
#include <string>
#include <vector>

#include "support/catch.h"

namespace sgtc {
namespace {

struct Parsed {
  std::optional<Options> options;
  int exit_code = -1;
};

Parsed parse(std::vector<const char*> words) {
  words.insert(words.begin(), "sgtc");
  Parsed parsed;
  parsed.options = parse_options(static_cast<int>(words.size()), words.data(), &parsed.exit_code);
  return parsed;
}

TEST_CASE("a model alone is compiled to train") {
  const Parsed parsed = parse({"model.onnx"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->model == "model.onnx");
  CHECK(parsed.options->output == "train");
  CHECK(parsed.options->dims.size() == 1);
}

TEST_CASE("emitting without -o writes no executable") {
  const Parsed parsed = parse({"model.onnx", "--emit-plan"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->output.empty());
  REQUIRE(parsed.options->emit.size() == 1);
  CHECK(parsed.options->emit[0].what == "plan");
  CHECK(parsed.options->emit[0].file.empty());
}

TEST_CASE("linting (--lint) writes nothing") {
  const Parsed parsed = parse({"model.onnx", "--lint"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->output.empty());
  CHECK(parsed.options->stop_after == "autodiff");
  CHECK(parse({"model.onnx", "--lint", "-o", "train"}).exit_code == 2);
  CHECK(parse({"model.onnx", "--lint", "--emit-plan"}).exit_code == 2);
}

TEST_CASE("each text of --emit may have a file") {
  const Parsed parsed = parse({"--emit=exe=out,plan-json=p.json", "--emit-plan=p.txt", "m.onnx"});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->emit.size() == 3);
  CHECK(parsed.options->emit[0].what == "exe");
  CHECK(parsed.options->emit[0].file == "out");
  CHECK(parsed.options->emit[1].what == "plan-json");
  CHECK(parsed.options->emit[1].file == "p.json");
  CHECK(parsed.options->emit[2].what == "plan");
  CHECK(parsed.options->emit[2].file == "p.txt");
}

TEST_CASE("several sizes of dimensions make a plan for each combination") {
  const Parsed parsed = parse({"m.onnx", "--dim", "B=4,7", "--dim", "T=2"});
  REQUIRE(parsed.options);
  REQUIRE(parsed.options->dims.size() == 2);
  using Dim = std::pair<std::string, int64_t>;
  CHECK(parsed.options->dims[0] == std::vector<Dim>{{"B", 4}, {"T", 2}});
  CHECK(parsed.options->dims[1] == std::vector<Dim>{{"B", 7}, {"T", 2}});
}

TEST_CASE("an option takes one value and leaves the model") {
  const Parsed parsed = parse({"--train", "h.*", "--freeze", "*.bias", "--train", "w*", "m.onnx"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->train == std::vector<std::string>{"h.*", "w*"});
  CHECK(parsed.options->freeze == std::vector<std::string>{"*.bias"});
  CHECK(parsed.options->model == "m.onnx");
}

TEST_CASE("help and version are no errors") {
  CHECK(parse({"--help"}).exit_code == 0);
  CHECK(parse({"--version"}).exit_code == 0);
}

TEST_CASE("padding rows are given per tensor") {
  const Parsed parsed = parse({"--padding-index", "a.weight=0", "--padding-index=x=y=3", "m.onnx"});
  REQUIRE(parsed.options);
  CHECK(parsed.options->padding_index ==
        std::map<std::string, int64_t>{{"a.weight", 0}, {"x=y", 3}});
}

TEST_CASE("usage errors exit with 2") {
  const std::vector<std::vector<const char*>> wrong = {
      {},
      {"--optimiser", "sgd", "m.onnx"},
      {"a.onnx", "b.onnx"},
      {"m.onnx", "--optimizer", "rmsprop"},
      {"m.onnx", "--micro-batches", "0"},
      {"m.onnx", "--dim", "B"},
      {"m.onnx", "--dim", "B=x"},
      {"m.onnx", "--dim", "B=0"},
      {"m.onnx", "--dim", "B=9223372036854775808"},
      {"m.onnx", "--padding-index", "table"},
      {"m.onnx", "--padding-index", "table=-1"},
      {"m.onnx", "--emit", "pdf"},
      {"m.onnx", "--nesterov"},
      {"m.onnx", "--momentum", "0.9", "--optimizer", "adamw"},
      {"m.onnx", "--clip-norm", "-1"},
      {"m.onnx", "--betas", "0.9"},
      {"m.onnx", "--precision", "fp16"},
  };
  for (const auto& words : wrong) {
    const Parsed parsed = parse(words);
    INFO(words.size() << " words, last " << (words.empty() ? "none" : words.back()));
    CHECK_FALSE(parsed.options);
    CHECK(parsed.exit_code == 2);
  }
}

}  // namespace
}  // namespace sgtc
