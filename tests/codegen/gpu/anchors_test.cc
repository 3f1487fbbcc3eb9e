// The text of GPU kernels that call the written ones.
#include <regex>

#include "codegen/gpu/compile.h"
#include "codegen/gpu/ptxas.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

gpu::GpuKernel compile(const std::string& text, bool assemble = false) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  REQUIRE(groups.size() == 1);
  gpu::GpuCompileOptions options;
  options.target = kHopperTarget.name;
  if (assemble) options.ptxas = gpu::find_ptxas();
  return gpu::compile_gpu_kernels({form_kernel(graph, groups[0], 0, kHopperTarget)}, options)[0];
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kBare =
    "feed %a: bf16[4096,768]\nfeed %b: bf16[768,768]\n%p = matmul(%a, %b)\noutput \"p\" %p";
const std::string kSplit =
    "feed %a: bf16[4096,768]\nfeed %b: bf16[4096,768]\n"
    "%p = matmul(%a, %b) {transpose_a=1}\noutput \"p\" %p";
const std::string kPair =
    "feed %a: bf16[8192,4096]\nfeed %b: bf16[4096,4096]\n%p = matmul(%a, %b)\noutput \"p\" %p";
const std::string kGelu =
    "feed %a: bf16[32768,768]\nfeed %b: bf16[768,3072]\nfeed %c: f32[3072]\n"
    "%p = matmul(%a, %b)\n%f = cast(%p) {to=\"f32\"}\n%s = add(%f, %c)\n"
    "constant %h: f32[] = [0.5]\nconstant %k: f32[] = [0.7978845608]\n"
    "constant %q: f32[] = [0.044715]\nconstant %one: f32[] = [1]\n"
    "%s2 = mul(%s, %s)\n%s3 = mul(%s2, %s)\n%t = mul(%s3, %q)\n%u = add(%s, %t)\n"
    "%v = mul(%u, %k)\n%w = tanh(%v)\n%x = add(%w, %one)\n%y = mul(%s, %h)\n%z = mul(%x, %y)\n"
    "%g = cast(%z) {to=\"bf16\"}\n%e = cast(%s) {to=\"bf16\"}\noutput \"g\" %g\noutput \"e\" %e";
const std::string kOdd =
    "feed %a: bf16[100,72]\nfeed %b: bf16[50,72]\nfeed %r: bf16[100,50]\n"
    "%p = matmul(%a, %b) {transpose_b=1}\n%y = add(%p, %r)\noutput \"y\" %y";

}  // namespace

TEST_CASE("a matmul uses the tensor cores, with all sizes as constants") {
  const std::string ptx = compile(kBare).ptx;
  CHECK(contains(ptx, "wgmma.mma_async"));
  CHECK(contains(ptx, "cp.async.bulk.tensor.3d"));
  CHECK(contains(ptx, ".maxntid 384"));
  CHECK(contains(ptx, ".maxnreg 168"));
  // a, b, result, table, micro-batch and two maps.
  CHECK(contains(ptx, "_param_7"));
  CHECK_FALSE(contains(ptx, "_param_8"));
  CHECK_FALSE(contains(ptx, "call"));
  CHECK_FALSE(contains(ptx, "local_depot"));
  CHECK_FALSE(std::regex_search(ptx, std::regex("(div|rem)\\.[us](32|64)")));
}

TEST_CASE("results are stored in 16 bytes, and with a residual it is prefetched") {
  CHECK(std::regex_search(compile(kBare).ptx, std::regex("st\\.global\\.v4\\.[bu]32")));
  CHECK_FALSE(contains(compile(kBare).ptx, "prefetch"));
  CHECK(contains(compile(kOdd).ptx, "prefetch.global.L2"));
}

TEST_CASE("ptxas spills nothing and serialises no product") {
  if (gpu::find_ptxas().empty()) return;
  for (const std::string& text : {kBare, kSplit, kPair, kGelu, kOdd}) {
    const gpu::GpuKernel kernel = compile(text, true);
    CHECK(kernel.cubin.compare(1, 3, "ELF") == 0);
    CHECK_FALSE(gpu::serializes_products(kernel.report));
    CHECK(contains(kernel.report, "Used 168 registers"));
    CHECK(contains(kernel.report, "0 bytes spill stores, 0 bytes spill loads"));
  }
}

TEST_CASE("a kernel whose change of registers ptxas ignores is known to be slow") {
  const std::string ptxas = gpu::find_ptxas();
  if (ptxas.empty()) return;
  const std::string unbounded =
      std::regex_replace(compile(kBare).ptx, std::regex("\\.maxn[^\n]*\n"), "");
  const gpu::Assembled assembled = gpu::assemble_ptx(ptxas, unbounded, "sm_90a");
  CHECK_FALSE(assembled.cubin.empty());
  CHECK(gpu::serializes_products(assembled.report));
}
