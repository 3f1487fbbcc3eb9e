// The launches of matrix products on Hopper.
#include "matmul/sm_90a/schedule.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::kernels;

namespace {

// Of the product of operands with these shapes, such as "[512,64]", and attributes.
KernelSpec matmul(const std::string& a, const std::string& b, const std::string& attributes = "",
                  const std::string& dtype = "bf16", const KernelTarget& target = kHopperTarget) {
  const Graph graph = parse_graph("feed %a: " + dtype + a + "\nfeed %b: " + dtype + b +
                                  "\n%p = matmul(%a, %b)" + attributes + "\noutput \"p\" %p");
  const std::vector<Group> groups = fuse(graph, {}, target);
  REQUIRE(groups.size() == 1);
  return form_kernel(graph, groups[0], 0, target);
}

bool uses(const KernelSpec& spec, const std::string& kernel) {
  return spec.entry.name == "sgtc_matmul_sm_90a_" + kernel;
}

std::vector<KernelArgument::Kind> further_arguments(const KernelSpec& spec) {
  std::vector<KernelArgument::Kind> kinds;
  for (const KernelArgument& argument : spec.arguments) {
    if (argument.kind != KernelArgument::Kind::kValue) kinds.push_back(argument.kind);
  }
  return kinds;
}

using Kind = KernelArgument::Kind;

}  // namespace

TEST_CASE("the form follows from the shape") {
  // GPT-2 with 32768 tokens, as measured.
  CHECK(uses(matmul("[32768,768]", "[768,2304]"), "pingpong_dl"));
  CHECK(uses(matmul("[32768,768]", "[768,768]"), "pingpong_dl"));
  CHECK(uses(matmul("[32768,768]", "[50304,768]", " {transpose_b=1}"), "pingpong_dd"));
  CHECK(uses(matmul("[32768,3072]", "[3072,768]"), "cooperative_pair_dl"));
  CHECK(uses(matmul("[32768,768]", "[32768,3072]", " {transpose_a=1}"), "cooperative_ll"));
  CHECK(uses(matmul("[8192,8192]", "[8192,8192]"), "cooperative_pair_dl"));
}

TEST_CASE("a launch has a map of each operand, and its shape") {
  const KernelSpec spec = matmul("[2,1000,72]", "[2,72,264]");
  REQUIRE(uses(spec, "pingpong_dl"));
  CHECK(spec.launch.threads == kMatmulThreads);
  CHECK(spec.launch.shared_bytes == matmul_shared_bytes(kPingPong));
  CHECK(spec.launch.registers == 168);
  CHECK(spec.launch.cluster == 1);
  CHECK_FALSE(spec.launch.resident);
  REQUIRE(spec.launch.tensor_maps.size() == 2);
  const TensorMap& a = spec.launch.tensor_maps[0];
  CHECK(a.argument == spec.operand_arguments[0]);
  CHECK(a.sizes == std::vector<int64_t>{72, 1000, 2});
  CHECK(a.strides == std::vector<int64_t>{144, 144000});
  CHECK(a.box == std::vector<int64_t>{64, 128, 1});
  const TensorMap& b = spec.launch.tensor_maps[1];
  CHECK(b.sizes == std::vector<int64_t>{264, 72, 2});
  CHECK(b.strides == std::vector<int64_t>{528, 38016});
  CHECK(b.box == std::vector<int64_t>{64, 64, 1});
  // 2 batches of 8 x 3 tiles; the depth is two k-blocks.
  CHECK(spec.blocks == 48);
  CHECK(spec.entry.shape == std::vector<int64_t>{1000, 264, 2, 1});
  CHECK(further_arguments(spec) == std::vector<Kind>{Kind::kTable});
  CHECK(spec.table->element_count() == 48 * int64_t{sizeof(MatmulItem)});
}

TEST_CASE("a depth that is split has partial sums and flags") {
  const KernelSpec spec = matmul("[32768,768]", "[32768,768]", " {transpose_a=1}");
  REQUIRE(uses(spec, "cooperative_ll"));
  CHECK(spec.launch.resident);
  CHECK(spec.blocks == 132);
  CHECK(further_arguments(spec) == std::vector<Kind>{Kind::kWorkspace, Kind::kFlags, Kind::kTable});
  // 6 x 3 tiles in eight parts each: 126 leave a partial sum of two warpgroups.
  CHECK(spec.workspace_bytes == 126 * 2 * int64_t{kMatmulPartialFloats} * 4);
  CHECK(spec.flag_bytes == 126 * 2 * 4);
}

TEST_CASE("the grid follows the device") {
  KernelTarget small = kHopperTarget;
  small.multiprocessors = 7;
  CHECK(matmul("[8192,768]", "[768,2304]", "", "bf16", small).blocks == 7);
  CHECK(matmul("[8192,8192]", "[8192,8192]", "", "bf16", small).blocks == 7);
  small.multiprocessors = 8;
  CHECK(uses(matmul("[8192,8192]", "[8192,8192]", "", "bf16", small), "cooperative_pair_dl"));
}

TEST_CASE("what the copy engine cannot read has no tensor-core kernel") {
  for (const KernelSpec& spec :
       {matmul("[64,63]", "[64,63]", " {transpose_b=1}"), matmul("[64,64]", "[64,50257]"),
        matmul("[64,64]", "[64,64]", "", "f32"), matmul("[64,64]", "[2,64,64]"),
        matmul("[0,64]", "[64,64]"), matmul("[64,64]", "[64,64]", "", "bf16", kAmpereTarget)}) {
    CHECK(spec.entry.name.find("sm_90a") == std::string::npos);
  }
  // An odd number of rows or columns of the result alone does not matter.
  CHECK(uses(matmul("[63,64]", "[50257,64]", " {transpose_b=1}"), "pingpong_dd"));
}

TEST_CASE("equal launches have equal symbols, other tables others") {
  CHECK(matmul("[512,64]", "[64,64]").symbol == matmul("[512,64]", "[64,64]").symbol);
  KernelTarget small = kHopperTarget;
  small.multiprocessors = 2;
  CHECK(matmul("[512,64]", "[64,64]").symbol !=
        matmul("[512,64]", "[64,64]", "", "bf16", small).symbol);
}

TEST_CASE("a former looks at equal code once, for each target") {
  const Graph graph = parse_graph(
      "feed %a: bf16[4096,4096]\nfeed %b: bf16[4096,4096]\n%p = matmul(%a, %b)\n"
      "%q = matmul(%p, %a)\n%r = matmul(%q, %b) {transpose_b=1}\noutput \"r\" %r");
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  REQUIRE(groups.size() == 3);
  KernelTarget smaller = kHopperTarget;
  smaller.multiprocessors = 120;
  KernelFormer former;
  for (const KernelTarget& target : {kHopperTarget, smaller}) {
    std::vector<KernelSpec> formed;
    for (const Group& group : groups) {
      formed.push_back(former.form(graph, group, 0, target));
      const KernelSpec alone = form_kernel(graph, group, 0, target);
      CHECK(formed.back().symbol == alone.symbol);
      CHECK(formed.back().blocks == alone.blocks);
      REQUIRE(formed.back().arguments.size() == alone.arguments.size());
      for (size_t i = 0; i < alone.arguments.size(); ++i) {
        CHECK(formed.back().arguments[i].kind == alone.arguments[i].kind);
        CHECK(formed.back().arguments[i].value == alone.arguments[i].value);
      }
    }
    CHECK(formed[0].table == formed[1].table);
    CHECK(formed[0].arguments[0].value != formed[1].arguments[0].value);
    CHECK(formed[0].table != formed[2].table);
    CHECK(formed[0].symbol != formed[2].symbol);
  }
  const KernelSpec large = former.form(graph, groups[0], 0, kHopperTarget);
  CHECK(large.symbol != former.form(graph, groups[0], 0, smaller).symbol);
}
