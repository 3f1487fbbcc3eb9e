// The text of the kernels that run on any GPU.
#include <regex>

#include "codegen/gpu/compile.h"
#include "codegen/gpu/ptxas.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string ptx_of(const std::string& text, const KernelTarget& target) {
  const Graph graph = parse_graph(text);
  std::vector<KernelSpec> specs;
  for (const Group& group : fuse(graph, {}, target)) {
    if (has_code(group)) specs.push_back(form_kernel(graph, group, 0, target));
  }
  gpu::GpuCompileOptions options;
  options.target = target.name;
  std::string ptx;
  for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(specs, options)) ptx += kernel.ptx;
  return ptx;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All is inlined, nothing lies in the thread's memory, and pointers are known to be global.
void check_text(const std::string& text,
                const std::vector<KernelTarget>& targets = {kAmpereTarget, kHopperTarget}) {
  for (const KernelTarget& target : targets) {
    const std::string ptx = ptx_of(text, target);
    INFO(text);
    CHECK(contains(ptx, ".target " + target.name));
    CHECK_FALSE(contains(ptx, "call"));
    CHECK_FALSE(contains(ptx, "local_depot"));
    CHECK_FALSE(std::regex_search(ptx, std::regex("(ld|st)\\.(v[24]\\.)?[fbu](8|16|32|64)")));
    CHECK_FALSE(contains(ptx, "atom.global.add.f32"));
  }
}

std::string matmul(const std::string& dtype, const std::string& rest = "output \"p\" %p") {
  return "feed %a: " + dtype + "[1000,300]\nfeed %b: " + dtype +
         "[300,1000]\n%p = matmul(%a, %b)\n" + rest;
}

}  // namespace

TEST_CASE("products in single precision are fused multiply-adds from registers") {
  const std::string ptx = ptx_of(matmul("f32"), kHopperTarget);
  CHECK(contains(ptx, "fma.rn.f32"));
  CHECK(contains(ptx, "ld.shared.v4.f32"));
  CHECK(contains(ptx, "st.global.v4.f32"));
}

TEST_CASE("the kernel of a product has its epilogue") {
  const std::string ptx = ptx_of(matmul("f32", "%t = tanh(%p)\noutput \"t\" %t"), kAmpereTarget);
  CHECK(contains(ptx, "ex2.approx"));
  CHECK(contains(ptx, "rcp.approx"));
}

TEST_CASE("products on tensor cores of any GPU") {
  const std::string half =
      "feed %a: f16[256,64]\nfeed %b: f16[64,256]\n%p = matmul(%a, %b)\noutput \"p\" %p";
  for (const KernelTarget& target : {kAmpereTarget, kHopperTarget}) {
    const std::string ptx = ptx_of(half, target);
    CHECK(contains(ptx, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
    CHECK(contains(ptx, "cp.async.cg.shared.global"));
    CHECK(contains(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans"));
  }
}

TEST_CASE("the text of products of other types") {
  check_text(matmul("f64"));
  check_text(matmul("i32"));
}

TEST_CASE("the text of convolutions") {
  const std::string window = "{strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=2";
  check_text("feed %x: f32[2,8,9,9]\nfeed %w: f32[6,4,3,3]\n%y = conv(%x, %w) " + window +
             "}\noutput \"y\" %y");
  check_text("feed %x: bf16[2,8,9,9]\nfeed %y: bf16[2,6,5,5]\n%w = conv_weight_grad(%x, %y) " +
             window + ", kernel=[3,3]}\noutput \"w\" %w");
}

TEST_CASE("the text of pools") {
  const std::string window = "{strides=[2], pads=[1,1], dilations=[1], kernel=[3], output=[5]}\n";
  check_text("feed %x: f32[2,8,9]\nfeed %d: f32[2,8,5]\n%y = max_pool(%x) " + window +
             "%g = max_pool_grad(%x, %d) " + window + "output \"y\" %y\noutput \"g\" %g");
}

TEST_CASE("the text of scatters") {
  check_text(
      "feed %x: bf16[900,70]\nfeed %i: i64[64]\nfeed %u: bf16[64,70]\n"
      "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y");
  check_text(
      "feed %x: f32[9,7]\nfeed %i: i64[3,7]\nfeed %u: f32[3,7]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"max\"}\noutput \"y\" %y");
}

TEST_CASE("the text of scans") {
  check_text("feed %x: f32[9,70]\n%y = cum_sum(%x) {axis=1}\noutput \"y\" %y");
  check_text("feed %x: f32[9,70]\n%y = arg_max(%x) {axis=1, select_last=0}\noutput \"y\" %y");
}

TEST_CASE("the text of attention") {
  const std::string head = "f32[1,2,70,20]\n", end = ") {scale=0.25, causal=1}\n";
  check_text("feed %q: " + head + "feed %k: " + head + "feed %v: " + head + "feed %d: " + head +
                 "%y, %max, %sum = attention(%q, %k, %v" + end +
                 "%dq, %dk, %dv = attention_grad(%q, %k, %v, %y, %max, %sum, %d" + end +
                 "output \"dq\" %dq\noutput \"dk\" %dk\noutput \"dv\" %dv",
             {kAmpereTarget});
}

TEST_CASE("ptxas takes the kernels for both targets, with few spills") {
  gpu::GpuCompileOptions options;
  options.ptxas = gpu::find_ptxas();
  if (options.ptxas.empty()) return;
  for (const KernelTarget& target : {kAmpereTarget, kHopperTarget}) {
    const Graph graph = parse_graph(matmul("f32"));
    options.target = target.name;
    const KernelSpec spec = form_kernel(graph, fuse(graph, {}, target)[0], 0, target);
    const gpu::GpuKernel kernel = gpu::compile_gpu_kernels({spec}, options)[0];
    CHECK(kernel.cubin.compare(1, 3, "ELF") == 0);
    std::smatch spills;
    REQUIRE(std::regex_search(kernel.report, spills, std::regex("([0-9]+) bytes spill stores")));
    CHECK(std::stoi(spills[1]) <= 128);
  }
}
