// The tile visitors of GPU kernels, as emitted.
#include "codegen/gpu/emit_tile_visitor.h"
#include "codegen/module.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

using Emit = void (*)(llvm::Module&, const KernelSpec&);

// The visitor of the only kernel of a graph.
std::string visitor_of(const std::string& text, Emit emit = gpu::emit_tile_store) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  REQUIRE(groups.size() == 1);
  const KernelSpec spec = form_kernel(graph, groups[0], 0, kHopperTarget);
  llvm::LLVMContext context;
  llvm::Module module("visitor", context);
  emit(module, spec);
  check_module(module, spec.symbol, "as emitted");
  return to_text(module);
}

std::string product(const std::string& columns, const std::string& rest) {
  return "feed %a: bf16[256,64]\nfeed %b: bf16[64," + columns + "]\n%p = matmul(%a, %b)\n" + rest;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE("eight columns are one store of 16 bytes, single ones the rest") {
  const std::string text = visitor_of(product("128", "output \"p\" %p"));
  CHECK(count(text,
              "define void @sgtc_tile_store(ptr %0, i64 %1, i64 %2, i64 %3, <8 x float> %4, "
              "i64 %5)") == 1);
  CHECK(count(text, "store <8 x i16>") == 1);
  CHECK(count(text, ", align 16") == 1);
  CHECK(count(text, "store <1 x i16>") == 1);
  CHECK(count(text, "alwaysinline") >= 1);
}

TEST_CASE("rows of an odd length are stored at the alignment of their elements") {
  const std::string text = visitor_of(product("127", "output \"p\" %p"));
  CHECK(count(text, "store <8 x i16>") == 1);
  CHECK(count(text, ", align 16") == 0);
  const std::string half = visitor_of(product("124", "output \"p\" %p"));
  CHECK(count(half, "store <8 x i16>") == 1);
  CHECK(count(half, ", align 8") >= 1);
}

TEST_CASE("bias and residual are read as vectors") {
  const std::string text = visitor_of(
      product("128",
              "feed %c: f32[128]\nfeed %r: bf16[256,128]\n%f = cast(%p) {to=\"f32\"}\n"
              "%s = add(%f, %c)\n%n = cast(%s) {to=\"bf16\"}\n%y = add(%n, %r)\noutput \"y\" %y"));
  CHECK(count(text, "load <8 x float>") == 1);
  CHECK(count(text, "load <8 x i16>") == 1);
}

TEST_CASE("what differs from row to row is prefetched") {
  const std::string residual =
      product("128",
              "feed %c: bf16[128]\nfeed %r: bf16[256,128]\n%s = add(%p, %c)\n%y = add(%s, %r)\n"
              "output \"y\" %y");
  CHECK(count(visitor_of(residual, gpu::emit_tile_prefetch), "prefetch.global.L2") == 1);
  const std::string wide = product("128",
                                   "feed %r: f32[256,128]\n%f = cast(%p) {to=\"f32\"}\n"
                                   "%y = add(%f, %r)\noutput \"y\" %y");
  CHECK(count(visitor_of(wide, gpu::emit_tile_prefetch), "prefetch.global.L2") == 2);
  const std::string bias = product("128", "feed %c: bf16[128]\n%y = add(%p, %c)\noutput \"y\" %y");
  CHECK(count(visitor_of(bias, gpu::emit_tile_prefetch), "prefetch") == 1);  // the name
}

TEST_CASE("heads are split where the product is stored") {
  const std::string text = visitor_of(
      product("128",
              "%r = reshape(%p) {shape=[4,64,2,64]}\n%t = transpose(%r) {perm=[0,2,1,3]}\n"
              "output \"t\" %t"));
  CHECK(count(text, "store <8 x i16>") == 1);
  CHECK(count(text, ", align 16") == 1);
}
