// The text of GPU kernels.
#include <sstream>

#include "codegen/gpu/compile.h"
#include "codegen/gpu/emit_stamps.h"
#include "codegen/gpu/ptxas.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"
#include "support/count.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

std::vector<KernelSpec> specs_of(const std::string& text) {
  const Graph graph = parse_graph(text);
  std::vector<KernelSpec> specs;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (has_code(group)) specs.push_back(form_kernel(graph, group, 0, kHopperTarget));
  }
  return specs;
}

std::string ptx_of(const std::string& text, const std::string& target = "sm_90a") {
  gpu::GpuCompileOptions options;
  options.target = target;
  std::string ptx;
  for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(specs_of(text), options)) {
    ptx += kernel.ptx;
  }
  return ptx;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kSoftmax =
    "feed %x: f32[6,300]\n%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
    "%s = reduce_sum(%e) {axes=[1]}\n%y = div(%e, %s)\noutput \"y\" %y";

const std::string kFunctions =
    "feed %x: f32[64]\n%a = tanh(%x)\n%b = erf(%a)\n%c = pow(%b, %x)\n%d = sin(%c)\n"
    "%e = softplus(%d)\n%f = fmod(%e, %x)\n%g = cast(%f) {to=\"f64\"}\n%h = cos(%g)\n"
    "%i = pow(%h, %g)\n%j = fmod(%i, %g)\n%k = log(%j)\noutput \"k\" %k\n"
    "feed %s: i64[]\nfeed %t: i64[]\n%u = random_normal(%s, %t) {shape=[64], stream=1}\n"
    "output \"u\" %u";

}  // namespace

TEST_CASE("a kernel has a pointer per argument, the micro-batch and stamps") {
  const std::string ptx = ptx_of("feed %x: f32[64]\n%y = neg(%x)\noutput \"y\" %y");
  CHECK(contains(ptx, ".visible .entry k_loop_"));
  CHECK(contains(ptx, "_param_3"));
  CHECK_FALSE(contains(ptx, "_param_4"));
  CHECK(contains(ptx, ".maxntid 256"));
}

TEST_CASE("a kernel stamps its begin and each of its ends, if it has stamps") {
  gpu::GpuCompileOptions options;
  options.target = "sm_90a";
  const std::string mark = gpu::compile_gpu_kernels({gpu::mark_kernel()}, options)[0].ptx;
  CHECK(contains(mark, ".visible .entry mark("));
  for (const std::string& ptx : {mark, ptx_of(kSoftmax)}) {
    const size_t entries = count(ptx, ".entry");
    CHECK(count(ptx, "%globaltimer") == 2 * entries);
    CHECK(count(ptx, "%smid") == entries);
    CHECK(count(ptx, ".global.min.u64") == 2 * entries);
  }
}

TEST_CASE("accesses are 16 bytes wide, and read-only ones need no coherence") {
  const std::string single =
      ptx_of("feed %x: f32[9,64]\nfeed %b: f32[64]\n%y = add(%x, %b)\noutput \"y\" %y");
  CHECK(contains(single, "ld.global.nc.v4.f32"));
  CHECK(contains(single, "st.global.v4.f32"));
  const std::string narrow =
      ptx_of("feed %x: bf16[9,64]\nfeed %b: bf16[64]\n%y = add(%x, %b)\noutput \"y\" %y");
  CHECK(contains(narrow, "ld.global.nc.v4.u32"));  // pairs
  CHECK(contains(narrow, "st.global.v4.b32"));
  CHECK(contains(narrow, "cvt.rn.bf16x2.f32"));
}

TEST_CASE("what a result may overwrite is not read as constant memory") {
  const std::string ptx = ptx_of("feed %x: f32[64]\n%y = neg(%x)\noutput \"y\" %y");
  CHECK(contains(ptx, "ld.global.v4.f32"));
  CHECK_FALSE(contains(ptx, "ld.global.nc"));
}

TEST_CASE("rows that fit into registers are read once") {
  const std::string rows = ptx_of(
      "feed %x: f32[600,1024]\n%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n"
      "%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n%y = div(%e, %s)\noutput \"y\" %y");
  CHECK(count(rows, "ld.global.v4.f32") == 2);  // the result may overwrite them
  CHECK(count(rows, "ld.global") == 2);
  CHECK(count(rows, "ex2.approx") == 8);
  const std::string long_rows = ptx_of(
      "feed %x: f32[600,50304]\n%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n"
      "%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\noutput \"m\" %m\noutput \"s\" %s");
  // Two for each of four steps in the loop and one after it.
  CHECK(count(long_rows, "ld.global.nc.v4.f32") == 2 * (4 + 1));
}

TEST_CASE("an odd axis is read element by element") {
  const std::string ptx = ptx_of("feed %x: f32[63]\n%y = neg(%x)\noutput \"y\" %y");
  CHECK_FALSE(contains(ptx, ".v4"));
  CHECK_FALSE(contains(ptx, ".v2"));
}

TEST_CASE("marked functions are approximate") {
  const std::string ptx = ptx_of(
      "feed %x: f32[64]\n%a = exp(%x) {approximate=1}\n%b = div(%a, %x) {approximate=1}\n"
      "%c = rsqrt(%b) {approximate=1}\noutput \"c\" %c");
  CHECK(contains(ptx, "ex2.approx.ftz"));
  CHECK(contains(ptx, "rcp.approx.ftz"));
  CHECK(contains(ptx, "rsqrt.approx.ftz"));
  CHECK_FALSE(contains(ptx, "fma"));
  CHECK_FALSE(contains(ptx, "div.rn"));
}

TEST_CASE("nothing is contracted between nodes, and quotients and roots are exact") {
  const std::string ptx = ptx_of(
      "feed %x: f32[64]\n%a = mul(%x, %x)\n%b = add(%a, %x)\n%c = div(%b, %x)\n%d = sqrt(%c)\n"
      "output \"d\" %d");
  CHECK_FALSE(contains(ptx, "fma"));
  CHECK_FALSE(contains(ptx, "approx"));
  CHECK_FALSE(contains(ptx, "ftz"));
  CHECK(contains(ptx, "div.rn.f32"));
  CHECK(contains(ptx, "sqrt.rn.f32"));
}

TEST_CASE("no call is left, and no array in local memory but for tables") {
  for (const std::string& target : gpu::gpu_targets()) {
    const std::string functions = ptx_of(kFunctions, target);
    CHECK_FALSE(contains(functions, "call"));
    CHECK_FALSE(contains(functions, "__nv_"));
    CHECK_FALSE(contains(functions, "local_depot"));
    CHECK(contains(functions, ".target " + target));
  }
}

TEST_CASE("rows meet by shuffles, columns in shared memory, nothing by atomic operations") {
  const std::string rows = ptx_of(kSoftmax);
  CHECK(contains(rows, "shfl.sync.bfly.b32"));
  const std::string columns =
      ptx_of("feed %x: f32[900,64]\n%s = reduce_sum(%x) {axes=[0]}\noutput \"s\" %s");
  CHECK(contains(columns, "bar.sync"));
  CHECK(contains(columns, "ld.shared"));
  for (const std::string& ptx : {rows, columns}) {
    CHECK(count(ptx, "atom.") == 2 * count(ptx, ".entry"));  // stamps
    CHECK_FALSE(contains(ptx, "red.global"));
  }
}

TEST_CASE("indices are checked") {
  const std::string ptx =
      ptx_of("feed %t: f32[5,64]\nfeed %i: i64[4]\n%g = gather(%t, %i) {axis=0}\noutput \"g\" %g");
  CHECK(contains(ptx, "st.global.u64"));
  CHECK(contains(ptx, "v4.f32"));
}

// Blocks of 256, 128 and 512 threads, and bounds that hold for one of them alone.
TEST_CASE("kernels that are compiled side by side do not take each other's number of threads") {
  std::vector<KernelSpec> specs;
  for (int64_t i = 0; i < 16; ++i) {
    const std::string n = std::to_string(20000 + 256 * i);
    const std::string columns = std::to_string(100 + 500 * i);
    for (KernelSpec& spec :
         specs_of("feed %x: f32[" + n + "]\nfeed %z: f32[8," + columns +
                  "]\n%y = exp(%x)\n%s = reduce_sum(%z) {axes=[1]}\noutput \"y\" %y\n"
                  "output \"s\" %s\n")) {
      specs.push_back(std::move(spec));
    }
  }
  const auto text = [&](int jobs) {
    gpu::GpuCompileOptions options;
    options.target = "sm_90a";
    options.jobs = jobs;
    std::string all;
    for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(specs, options)) all += kernel.ptx;
    return all;
  };
  const std::string alone = text(1);
  for (int round = 0; round < 4; ++round) CHECK(text(4) == alone);
}

TEST_CASE("the text does not depend on jobs, and equal kernels are compiled once") {
  const std::vector<KernelSpec> specs = specs_of(
      "feed %x: f32[3]\nfeed %y: f32[7]\nfeed %z: f32[7]\n%a = exp(%x)\n"
      "%b = reduce_sum(%y) {axes=[0]}\n%c = reduce_sum(%z) {axes=[0]}\noutput \"a\" %a\n"
      "output \"b\" %b\noutput \"c\" %c");
  gpu::GpuCompileOptions one, two;
  one.target = two.target = "sm_80";
  two.jobs = 2;
  const auto first = gpu::compile_gpu_kernels(specs, one);
  const auto second = gpu::compile_gpu_kernels(specs, two);
  REQUIRE(first.size() == second.size());
  CHECK(first.size() <= specs.size());
  for (size_t i = 0; i < first.size(); ++i) CHECK(first[i].ptx == second[i].ptx);
}

TEST_CASE("ptxas accepts the text and spills nothing") {
  gpu::GpuCompileOptions options;
  options.ptxas = gpu::find_ptxas();
  if (options.ptxas.empty()) return;
  for (const std::string& target : gpu::gpu_targets()) {
    options.target = target;
    for (const std::string& text : {kSoftmax, kFunctions}) {
      for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(specs_of(text), options)) {
        CHECK(kernel.cubin.compare(1, 3, "ELF") == 0);
        CHECK(contains(kernel.report, "0 bytes spill stores, 0 bytes spill loads"));
      }
    }
  }
}

TEST_CASE("a text that ptxas refuses is an error with its words") {
  const std::string ptxas = gpu::find_ptxas();
  if (ptxas.empty()) return;
  CHECK_THROWS_AS(gpu::assemble_ptx(ptxas, "no assembly", "sm_90a"), Error);
}
