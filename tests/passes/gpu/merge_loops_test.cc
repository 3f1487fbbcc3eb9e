// Which loops become one kernel, and what its table says.
#include "passes/gpu/merge_loops.h"

#include <cstring>

#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// The kernels of a graph for a Hopper GPU.
std::vector<KernelSpec> kernels_of(const std::string& text) {
  const Graph graph = parse_graph(text);
  std::vector<KernelSpec> kernels;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (has_code(group)) kernels.push_back(form_kernel(graph, group, 0, kHopperTarget));
  }
  return kernels;
}

// w - g * rate for tensors of these sizes.
std::string steps(const std::vector<std::string>& shapes, const std::string& type = "f32") {
  std::string text = "feed %rate: " + type + "[]\n";
  std::string nodes;
  std::string updates;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string k = std::to_string(i);
    text += "state parameter %w" + k + ": " + type + shapes[i] + " = zero\nfeed %g" + k + ": " +
            type + shapes[i] + "\n";
    nodes += "%m" + k + " = mul(%g" + k + ", %rate) @update\n%n" + k + " = sub(%w" + k + ", %m" +
             k + ") @update\n";
    updates += "update %w" + k + " = %n" + k + "\n";
  }
  return text + nodes + updates;
}

std::string squares(const std::string& shape, int axis) {
  return "feed %x: f32" + shape + "\n%q = mul(%x, %x)\n%s = reduce_sum(%q) {axes=[" +
         std::to_string(axis) + "]}\noutput \"s\" %s";
}

gpu::MergeKey key_of(const std::string& text) {
  const std::vector<KernelSpec> kernels = kernels_of(text);
  REQUIRE(kernels.size() == 1);
  const auto key = gpu::merge_key(kernels[0]);
  REQUIRE(key.has_value());
  return *key;
}

gpu::MergedKernel merged(const std::vector<KernelSpec>& kernels) {
  std::vector<const KernelSpec*> members;
  for (const KernelSpec& kernel : kernels) members.push_back(&kernel);
  return gpu::merge_loops(members);
}

std::vector<int64_t> words_of(const Literal& table) {
  std::vector<int64_t> words(table.bytes().size() / 8);
  std::memcpy(words.data(), table.bytes().data(), table.bytes().size());
  return words;
}

}  // namespace

TEST_CASE("loops over any sizes have one form, and share code where equal lanes divide them") {
  const gpu::MergeKey flat = key_of(steps({"[4096]"}));
  for (const char* shape : {"[8]", "[768]", "[100000,4]", "[3,5,16]"}) {
    INFO(shape);
    CHECK(key_of(steps({shape})).form == flat.form);
    CHECK(key_of(steps({shape})).body == flat.body);
  }
  CHECK(key_of(steps({"[4098]"})).form == flat.form);
  CHECK(key_of(steps({"[4098]"})).body != flat.body);
  CHECK(key_of(steps({"[4096]"}, "bf16")).form != flat.form);
}

TEST_CASE("sums of rows share code for rows of one length, sums of everything for any") {
  CHECK(key_of(squares("[3000,512]", 1)).body == key_of(squares("[70000,512]", 1)).body);
  CHECK(key_of(squares("[70000,384]", 1)).form == key_of(squares("[70000,512]", 1)).form);
  CHECK(key_of(squares("[70000,384]", 1)).body != key_of(squares("[70000,512]", 1)).body);
  CHECK(key_of(squares("[20000]", 0)).body == key_of(squares("[50000]", 0)).body);
  CHECK(key_of(squares("[992]", 0)).body == key_of(squares("[1000]", 0)).body);
}

TEST_CASE("sums of columns and kernels that check indices are not merged") {
  CHECK_FALSE(gpu::merge_key(kernels_of(squares("[512,64]", 0))[0]).has_value());
  CHECK_FALSE(gpu::merge_key(kernels_of("feed %x: f32[2,20]\nfeed %i: i64[3]\n"
                                        "%g = gather(%x, %i) {axis=0}\noutput \"g\" %g")[0])
                  .has_value());
  CHECK_FALSE(
      gpu::merge_key(kernels_of("feed %x: f32[0]\n%y = neg(%x)\noutput \"y\" %y")[0]).has_value());
}

TEST_CASE("a merged kernel has the blocks of its loops, one after the other") {
  const std::vector<KernelSpec> kernels = kernels_of(steps({"[5000]", "[8]", "[2050]"}));
  REQUIRE(kernels.size() == 3);
  const KernelSpec kernel = merged(kernels).kernel;
  // 1250, 2 and 1025 vectors for blocks of 256 threads.
  CHECK(kernel.blocks == 5 + 1 + 5);
  CHECK(kernel.launch.indirect);
  CHECK(kernel.launch.threads == 256);
  REQUIRE(kernel.merged->bodies.size() == 2);
  CHECK(kernel.merged->bodies[0].mapping.items == 1250);
  CHECK(words_of(*kernel.table) ==
        std::vector<int64_t>{0, 5, 6, INT64_MAX, 0, 1250, 1, 0, 2, 1, 1, 1025, 1});
}

TEST_CASE("what all loops read is one argument, the rest follows loop by loop") {
  const std::vector<KernelSpec> kernels = kernels_of(steps({"[5000]", "[8]", "[2050]"}));
  const gpu::MergedKernel joint = merged(kernels);
  const size_t own = kernels[0].arguments.size() - 1;
  REQUIRE(joint.kernel.arguments.size() == 3 * own + 2);
  REQUIRE(joint.origins.size() == 3 * own + 1);
  CHECK(joint.kernel.arguments.back().kind == KernelArgument::Kind::kTable);
  for (size_t i = 0; i < joint.origins.size(); ++i) {
    const gpu::ArgumentOrigin& origin = joint.origins[i];
    const KernelArgument& argument = kernels[origin.member].arguments[origin.argument];
    CHECK(joint.kernel.arguments[i].value == argument.value);
    CHECK(joint.kernel.arguments[i].mode == argument.mode);
    for (size_t a = 0; a < argument.may_alias.size(); ++a) {
      const auto alias = static_cast<size_t>(joint.kernel.arguments[i].may_alias[a]);
      CHECK(joint.origins[alias].member == origin.member);
      CHECK(joint.origins[alias].argument == static_cast<size_t>(argument.may_alias[a]));
    }
  }
}

TEST_CASE("sizes and grids decide the symbol of a merged kernel") {
  const auto symbol = [](const std::vector<std::string>& shapes) {
    return merged(kernels_of(steps(shapes))).kernel.symbol;
  };
  CHECK(symbol({"[64]", "[128]"}) == symbol({"[64]", "[128]"}));
  CHECK(symbol({"[64]", "[128]"}) != symbol({"[128]", "[64]"}));
  CHECK(symbol({"[64]", "[128]"}) != symbol({"[64]", "[132]"}));
}
