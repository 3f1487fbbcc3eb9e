// The text of attention kernels for Hopper GPUs.
#include "codegen/gpu/compile.h"
#include "codegen/gpu/ptxas.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/sink_movements.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// Attention and its gradient, without the loops around them; the results are parts of packed
// tensors.
std::string text_of(const std::string& size, const std::string& keys, const std::string& mask) {
  const std::string x = "bf16[2,4,200," + size + "]", k = "bf16[2,4," + keys + "," + size + "]";
  const std::string last = mask.empty() ? "" : ", %mask";
  return "feed %q: " + x + "\nfeed %k: " + k + "\nfeed %v: " + k + "\nfeed %g: " + x + "\n" +
         (mask.empty() ? "" : "feed %mask: bf16" + mask + "\n") +
         "%o, %m, %s = attention(%q, %k, %v" + last +
         ") {scale=0.125, causal=1}\n%dq, %t = attention_query_grad(%q, %k, %v, %o, %m, %s, %g" +
         last + ") {scale=0.125, causal=1}\n%dk, %dv = attention_key_grad(%q, %k, %v, %g, %t" +
         last +
         ") {scale=0.125, causal=1}\n%y = transpose(%o) {perm=[0,2,1,3]}\n"
         "%dx = concat(%dq, %dk, %dv) {axis=2}\noutput \"y\" %y\noutput \"dx\" %dx";
}

std::vector<gpu::GpuKernel> compile(const std::string& text, bool assemble) {
  const Graph graph = sink_movements(parse_graph(text), kHopperTarget);
  std::vector<KernelSpec> specs;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    specs.push_back(form_kernel(graph, group, 0, kHopperTarget));
  }
  gpu::GpuCompileOptions options;
  options.target = kHopperTarget.name;
  if (assemble) options.ptxas = gpu::find_ptxas();
  std::vector<gpu::GpuKernel> kernels = gpu::compile_gpu_kernels(specs, options);
  std::erase_if(kernels, [](const gpu::GpuKernel& kernel) {
    return kernel.symbol.find("attention") == std::string::npos;
  });
  return kernels;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("attention and both halves of its gradient use the tensor cores") {
  const std::vector<gpu::GpuKernel> kernels = compile(text_of("64", "200", ""), false);
  REQUIRE(kernels.size() == 3);
  for (const gpu::GpuKernel& kernel : kernels) {
    INFO(kernel.symbol);
    CHECK(contains(kernel.ptx, "wgmma.mma_async"));
    CHECK(contains(kernel.ptx, "cp.async.bulk.tensor.4d"));
    CHECK(contains(kernel.ptx, "st.global.v4.u32"));
    CHECK_FALSE(contains(kernel.ptx, "call"));
    CHECK_FALSE(contains(kernel.ptx, "local_depot"));
  }
}

TEST_CASE(
    "products of attention do not wait for each other, and those without a mask stay in "
    "registers") {
  if (gpu::find_ptxas().empty()) return;
  const std::string size = GENERATE("64", "80", "128");
  const std::string keys = GENERATE("200", "203");
  const std::string mask = GENERATE("", "[2,1,1,", "[200,");
  const std::string shape = mask.empty() ? "" : mask + keys + "]";
  for (const gpu::GpuKernel& kernel : compile(text_of(size, keys, shape), true)) {
    INFO(kernel.symbol << ": " << kernel.report);
    CHECK_FALSE(kernel.cubin.empty());
    CHECK_FALSE(gpu::serializes_products(kernel.report));
    if (mask.empty()) CHECK(contains(kernel.report, " 0 bytes spill stores"));
  }
}
