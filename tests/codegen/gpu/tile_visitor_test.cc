// The tile visitors of GPU kernels, as emitted.
#include "codegen/gpu/emit_tile_visitor.h"
#include "codegen/module.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"
#include "support/count.h"

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

// Where a load from memory reads.
const std::string kGlobal = "ptr addrspace(1) %";

}  // namespace

TEST_CASE("eight columns are one store of 16 bytes, single ones the rest") {
  const std::string text = visitor_of(product("128", "output \"p\" %p"));
  CHECK(count(text,
              "define void @sgtc_tile_store(ptr %0, i64 %1, i64 %2, i64 %3, <8 x float> %4, "
              "i64 %5)") == 1);
  CHECK(count(text, "store <4 x i32>") == 1);  // pairs
  CHECK(count(text, ", align 16") == 1);
  CHECK(count(text, "store <1 x i16>") == 1);
  CHECK(count(text, "alwaysinline") >= 1);
}

TEST_CASE("rows of an odd length are stored at the alignment of their elements") {
  const std::string text = visitor_of(product("127", "output \"p\" %p"));
  CHECK(count(text, "store <8 x i16>") == 1);
  CHECK(count(text, ", align 16") == 0);
  const std::string half = visitor_of(product("124", "output \"p\" %p"));
  CHECK(count(half, "store <4 x i32>") == 1);
  CHECK(count(half, ", align 8") >= 1);
}

TEST_CASE("bias and residual are read as vectors") {
  const std::string text = visitor_of(
      product("128",
              "feed %c: f32[128]\nfeed %r: bf16[256,128]\n%f = cast(%p) {to=\"f32\"}\n"
              "%s = add(%f, %c)\n%n = cast(%s) {to=\"bf16\"}\n%y = add(%n, %r)\noutput \"y\" %y"));
  CHECK(count(text, "load <8 x float>") == 1);
  CHECK(count(text, "load <4 x i32>") == 1);
}

TEST_CASE("bias and residual are read ahead, and the store reads none of them") {
  const std::string text =
      product("128",
              "feed %c: f32[128]\nfeed %r: bf16[256,128]\n%f = cast(%p) {to=\"f32\"}\n"
              "%s = add(%f, %c)\n%n = cast(%s) {to=\"bf16\"}\n%y = add(%n, %r)\noutput \"y\" %y");
  const std::string load = visitor_of(text, gpu::emit_tile_load);
  CHECK(count(load, "define void @sgtc_tile_load(ptr %0, i64 %1, i64 %2, i64 %3, ptr %4)") == 1);
  CHECK(count(load, "load <8 x float>, " + kGlobal) == 1);
  CHECK(count(load, "load <4 x i32>, " + kGlobal) == 1);
  CHECK(count(load, "store <8 x float>") == 1);
  CHECK(count(load, "store <4 x i32>") == 1);
  CHECK(count(load, "store ") == 2);
  const std::string store = visitor_of(text, gpu::emit_tile_store_loaded);
  CHECK(count(store,
              "define void @sgtc_tile_store_loaded(ptr %0, i64 %1, i64 %2, i64 %3, "
              "<8 x float> %4, ptr %5)") == 1);
  CHECK(count(store, "load <8 x float>, ptr %") == 1);
  CHECK(count(store, "load <4 x i32>, ptr %") == 1);
  CHECK(count(store, "load <") == 2);
  CHECK(count(store, "store <4 x i32>") == 1);
}

TEST_CASE("what exceeds the words that are read ahead is read by the store") {
  std::string text;
  std::string sum = "%f = cast(%p) {to=\"f32\"}\n";
  std::string before = "%f";
  for (const std::string i : {"0", "1", "2"}) {
    text += "feed %r" + i + ": f32[256,128]\n";
    sum += "%s" + i + " = add(" + before + ", %r" + i + ")\n";
    before = "%s" + i;
  }
  text = product("128", text + sum + "output \"y\" %s2");
  CHECK(gpu::kTileWords == 2 * 8);
  CHECK(count(visitor_of(text, gpu::emit_tile_load), "load <8 x float>, " + kGlobal) == 2);
  const std::string store = visitor_of(text, gpu::emit_tile_store_loaded);
  CHECK(count(store, "load <8 x float>, ptr %") == 2);
  CHECK(count(store, "load <8 x float>, " + kGlobal) == 1);
}

TEST_CASE("what is not read in any case or not in one piece is not read ahead") {
  const std::string columns =
      product("128",
              "feed %r: f32[128,256]\n%t = transpose(%r) {perm=[1,0]}\n"
              "%f = cast(%p) {to=\"f32\"}\n%y = add(%f, %t)\noutput \"y\" %y");
  CHECK(count(visitor_of(columns, gpu::emit_tile_load), "store ") == 0);
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
  CHECK(count(text, "store <4 x i32>") == 1);
  CHECK(count(text, ", align 16") == 1);
}
