// The text of kernels that compute several loops.
#include <regex>

#include "codegen/gpu/compile.h"
#include "codegen/gpu/ptxas.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/gpu/merge_loops.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

KernelSpec merged(const std::string& text) {
  const Graph graph = parse_graph(text);
  std::vector<KernelSpec> kernels;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    kernels.push_back(form_kernel(graph, group, 0, kHopperTarget));
  }
  std::vector<const KernelSpec*> members;
  for (const KernelSpec& kernel : kernels) members.push_back(&kernel);
  return gpu::merge_loops(members).kernel;
}

gpu::GpuKernel compile(const KernelSpec& kernel, const std::string& target, bool assemble = false) {
  gpu::GpuCompileOptions options;
  options.target = target;
  options.keep_llvm_ir = true;
  if (assemble) options.ptxas = gpu::find_ptxas();
  return gpu::compile_gpu_kernels({kernel}, options)[0];
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string updates(const std::vector<std::string>& sizes) {
  std::string leaves = "feed %rate: f32[]\n";
  std::string nodes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string k = std::to_string(i);
    leaves += "feed %w" + k + ": f32" + sizes[i] + "\nfeed %g" + k + ": f32" + sizes[i] + "\n";
    nodes += "%m" + k + " = mul(%g" + k + ", %rate)\n%n" + k + " = sub(%w" + k + ", %m" + k +
             ")\noutput \"n" + k + "\" %n" + k + "\n";
  }
  return leaves + nodes;
}

std::string sums(const std::vector<std::string>& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string k = std::to_string(i);
    text += "feed %x" + k + ": f32" + sizes[i] + "\n%q" + k + " = mul(%x" + k + ", %x" + k +
            ")\n%s" + k + " = reduce_sum(%q" + k + ") {axes=[1]}\noutput \"s" + k + "\" %s" + k +
            "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a merged kernel has three parameters and reads tensors in 16 bytes") {
  const KernelSpec kernel = merged(updates({"[4096]", "[768]", "[100000]"}));
  REQUIRE(kernel.merged->bodies.size() == 1);
  for (const char* target : {"sm_90a", "sm_80"}) {
    const std::string ptx = compile(kernel, target).ptx;
    CHECK(contains(ptx, "_param_2"));
    CHECK_FALSE(contains(ptx, "_param_3"));
    CHECK(std::regex_search(ptx, std::regex("ld\\.global(\\.nc)?\\.v4\\.[bfu]32")));
    CHECK(std::regex_search(ptx, std::regex("st\\.global\\.v4\\.[bfu]32")));
    CHECK(contains(ptx, ".maxntid 256"));
    CHECK_FALSE(contains(ptx, "call"));
    CHECK_FALSE(contains(ptx, "local_depot"));
  }
}

TEST_CASE("the code of a merged kernel does not grow with its tensors") {
  std::vector<std::string> sizes;
  for (int i = 1; i <= 60; ++i) sizes.push_back("[" + std::to_string(64 * i) + "]");
  const size_t many = compile(merged(updates(sizes)), "sm_90a").ptx.size();
  sizes.resize(2);
  const size_t few = compile(merged(updates(sizes)), "sm_90a").ptx.size();
  CHECK(many < 2 * few);
}

TEST_CASE("tensors of other divisors have bodies of their own in one kernel") {
  const KernelSpec kernel = merged(updates({"[4096]", "[4098]", "[4099]"}));
  CHECK(kernel.merged->bodies.size() == 3);
  const std::string ptx = compile(kernel, "sm_90a").ptx;
  CHECK(contains(ptx, "st.global.v4"));
  CHECK(contains(ptx, "st.global.v2"));
}

TEST_CASE("sums of merged kernels join threads as those of one tensor do") {
  const KernelSpec wholes = merged(sums({"[1,20000]", "[1,50000]", "[1,30000]"}));
  CHECK(wholes.merged->bodies.size() == 1);
  const std::string ptx = compile(wholes, "sm_90a").ptx;
  CHECK(contains(ptx, "shfl.sync.bfly"));
  CHECK(contains(ptx, "bar.sync"));
  CHECK_FALSE(contains(ptx, "local_depot"));
  CHECK(merged(sums({"[3000,512]", "[4000,512]"})).merged->bodies.size() == 1);
}

TEST_CASE("ptxas takes merged kernels and spills nothing") {
  if (gpu::find_ptxas().empty()) return;
  for (const std::string& text :
       {updates({"[4096]", "[4098]", "[4099]"}), sums({"[1,20000]", "[1,50000]"})}) {
    const gpu::GpuKernel kernel = compile(merged(text), "sm_90a", true);
    CHECK(kernel.cubin.compare(1, 3, "ELF") == 0);
    CHECK(contains(kernel.report, "0 bytes spill stores, 0 bytes spill loads"));
  }
}
