// The launches of the kernels that run on any GPU.
#include "gpu/launch.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

KernelSpec kernel_of(const std::string& text, const KernelTarget& target = kHopperTarget) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph, {}, target);
  REQUIRE(groups.size() == 1);
  return form_kernel(graph, groups[0], 0, target);
}

KernelSpec matmul(const std::string& a, const std::string& b, const std::string& dtype,
                  const KernelTarget& target = kHopperTarget, const std::string& attributes = "") {
  return kernel_of("feed %a: " + dtype + a + "\nfeed %b: " + dtype + b + "\n%p = matmul(%a, %b) {" +
                       attributes + "}\noutput \"p\" %p",
                   target);
}

// Workspace and flags of a kernel, in bytes.
std::pair<int64_t, int64_t> memory_of(const KernelSpec& spec) {
  return {spec.workspace_bytes, spec.flag_bytes};
}

}  // namespace

TEST_CASE("large results have large tiles, small ones small tiles") {
  const KernelSpec large = matmul("[4096,512]", "[512,4096]", "f32");
  CHECK(large.entry.name == "sgtc_matmul_f32");
  CHECK(large.launch.threads == gpu::kLargeTileThreads);
  CHECK(large.launch.registers == 128);
  CHECK(large.launch.shared_bytes == gpu::kSimtSharedBytes);
  CHECK(large.blocks == 32 * 32);
  CHECK(memory_of(large) == std::pair<int64_t, int64_t>{0, 0});
  const KernelSpec small = matmul("[600,100]", "[100,600]", "f32");
  CHECK(small.launch.threads == gpu::kSmallTileThreads);
  CHECK(small.blocks == 10 * 10);
  // 10 rows would leave most of a large tile empty.
  CHECK(matmul("[65536,64]", "[64,10]", "f32").launch.threads == gpu::kSmallTileThreads);
  CHECK(matmul("[4096,512]", "[512,4096]", "f64").launch.threads == gpu::kWideTileThreads);
}

TEST_CASE("blocks share the depth where there are few tiles") {
  const KernelSpec spec = matmul("[8192,64]", "[8192,128]", "f32", kHopperTarget, "transpose_a=1");
  // Two tiles, a part of 256 for each of 32 blocks.
  CHECK(spec.blocks == 2 * 32);
  CHECK(memory_of(spec) == std::pair<int64_t, int64_t>{2 * 32 * 64 * 64 * 4, 2 * 4});
  CHECK(spec.arguments.end()[-2].kind == KernelArgument::Kind::kWorkspace);
  CHECK(spec.arguments.back().kind == KernelArgument::Kind::kFlags);
  CHECK_FALSE(spec.launch.resident);
}

TEST_CASE("a long depth is split even where tiles fill the card, within bounds") {
  CHECK(matmul("[1024,20000]", "[20000,1024]", "f32").blocks == 16 * 16 * 3);
  // Sums of 2358 large tiles would need 150 MB for each part.
  const KernelSpec head =
      matmul("[32768,768]", "[32768,50257]", "f32", kHopperTarget, "transpose_a=1");
  CHECK(head.blocks == 6 * 393);
  CHECK(head.workspace_bytes == 0);
}

TEST_CASE("a split evens out the last wave of blocks") {
  // 144 large tiles: 7 parts are 3.8 waves of 264 blocks, 4 parts would be 2.2.
  const KernelSpec spec =
      matmul("[32768,768]", "[32768,3072]", "f32", kHopperTarget, "transpose_a=1");
  CHECK(spec.blocks == 144 * 7);
}

TEST_CASE("sixteen-bit products use mma.sync where rows are whole units") {
  CHECK(matmul("[128,64]", "[64,64]", "bf16", kAmpereTarget).entry.name ==
        "sgtc_matmul_mma_bf16_dl");
  CHECK(matmul("[128,64]", "[40,64]", "f16", kHopperTarget, "transpose_b=1").entry.name ==
        "sgtc_matmul_mma_f16_dd");
  CHECK(matmul("[128,64]", "[64,63]", "bf16", kAmpereTarget).entry.name == "sgtc_matmul_bf16");
  CHECK(matmul("[128,0]", "[0,64]", "bf16", kAmpereTarget).entry.name == "sgtc_matmul_bf16");
}

TEST_CASE("scatters have blocks for the card, whatever the size") {
  const auto scatter = [](const std::string& rows, const std::string& columns) {
    return kernel_of("feed %x: f32[" + rows + "," + columns +
                     "]\nfeed %i: i64[4096]\nfeed %u: " + "f32[4096," + columns +
                     "]\n%y = scatter_add(%x, %i, %u) {axis=0}\n" + "output \"y\" %y");
  };
  // 6 slices of columns, 88 blocks of rows each: four blocks a multiprocessor.
  CHECK(scatter("50257", "768").blocks == 6 * 88);
  CHECK(scatter("3", "1").blocks == 1);
  CHECK(scatter("5000000", "1").blocks == 4883);
}

TEST_CASE("sizes that kernels cannot count are refused") {
  CHECK_THROWS_AS(matmul("[3000000000,1]", "[1,1]", "f32"), Error);
}
