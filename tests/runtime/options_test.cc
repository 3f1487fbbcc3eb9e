#include "runtime/options.h"

#include "runtime/child.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

Options parse(const std::vector<const char*>& arguments) {
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

// The message of a command line that is refused with exit code 2.
std::string refusal(const std::vector<const char*>& arguments) {
  const ChildResult result = run_child([&] {
    parse(arguments);
    return 0;
  });
  CHECK(result.code == 2);
  return result.errors;
}

}  // namespace

TEST_CASE("values follow after an equals sign or a space") {
  const Options options = parse({"--steps=100", "--lr", "3e-4", "--decay=cosine", "--warmup", "10",
                                 "--seed", "-5", "--shuffle", "--quiet", "--dim", "B=7"});
  CHECK(options.steps == 100);
  CHECK(options.learning_rate == 3e-4);
  CHECK(options.decay == "cosine");
  CHECK(options.warmup == 10);
  CHECK(options.seed == -5);
  CHECK(options.seed_given);
  CHECK(options.shuffle);
  CHECK(options.quiet);
  CHECK(options.dims.at("B") == 7);
}

TEST_CASE("data options repeat and keep their order") {
  const Options options = parse({"--data", "x=a=b.npy", "--data=y=c.npy", "--tokens",
                                 "ids,labels=t.bin", "--eval=ids,labels=v.bin"});
  REQUIRE(options.data.size() == 2);
  CHECK(options.data[0].names == std::vector<std::string>{"x"});
  CHECK(options.data[0].path == "a=b.npy");
  CHECK(options.data[1].path == "c.npy");
  REQUIRE(options.tokens.size() == 1);
  CHECK(options.tokens[0].names == std::vector<std::string>{"ids", "labels"});
  CHECK(options.eval[0].names.size() == 2);
}

TEST_CASE("misspelt options get a suggestion") {
  CHECK(refusal({"--step", "3"}) == "error: --step: is not an option; did you mean --steps?\n");
  CHECK(refusal({"--wombat"}) == "error: --wombat: is not an option; --help lists the options\n");
  CHECK(refusal({"file.npy"}) ==
        "error: file.npy: is not an option; options begin with --; --help lists them\n");
}

TEST_CASE("values that cannot be read are refused with what was expected") {
  CHECK(refusal({"--steps", "ten"}) ==
        "error: --steps: expected an integer of at least 0, found 'ten'\n");
  CHECK(refusal({"--steps=1e3"}).find("found '1e3'") != std::string::npos);
  CHECK(refusal({"--lr=-1"}) == "error: --lr: expected a number of at least 0, found '-1'\n");
  CHECK(refusal({"--lr=nan"}).find("found 'nan'") != std::string::npos);
  CHECK(refusal({"--decay=exp"}) ==
        "error: --decay: expected none or linear or cosine, found 'exp'\n");
  CHECK(refusal({"--data", "x"}) == "error: --data: expected NAME=FILE, found 'x'\n");
  CHECK(refusal({"--data", "=f"}) == "error: --data: expected NAME=FILE, found '=f'\n");
  CHECK(refusal({"--tokens", "x=f"}) == "error: --tokens: expected X,Y=FILE, found 'x=f'\n");
  CHECK(refusal({"--seed"}) == "error: --seed: needs a value: N\n");
  CHECK(refusal({"--quiet=yes"}) == "error: --quiet: takes no value; leave out what follows it\n");
}

TEST_CASE("help lists every option in groups and keeps to 100 columns") {
  const std::string text = help_text("./train");
  for (const char* part : {"Data:", "--data NAME=FILE.npy", "--tokens X,Y=FILE.bin", "Checkpoints:",
                           "--save-every N", "--on-nan skip|stop", "--print-plan"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 100);
    CHECK((line.empty() || line.back() != ' '));
  }
}

}  // namespace sgtc::runtime
