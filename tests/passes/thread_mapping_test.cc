// How nests are dealt out to threads.
#include "passes/thread_mapping.h"

#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

gpu::ThreadMapping mapping_of(const std::string& text) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  return gpu::map_threads(form_kernel(graph, groups.front(), 0, kHopperTarget).nest);
}

gpu::ThreadMapping add(const std::string& type) {
  return mapping_of("feed %x: " + type + "\n%y = neg(%x)\noutput \"y\" %y");
}

gpu::ThreadMapping sum(const std::string& type, const std::string& axes) {
  return mapping_of("feed %x: " + type + "\n%y = reduce_sum(%x) {axes=[" + axes +
                    "]}\noutput \"y\" %y");
}

}  // namespace

TEST_CASE("a thread's access is 16 bytes of the narrowest element, at most 32 of the widest") {
  CHECK(add("f64[4096]").lanes == 2);
  CHECK(add("f32[4096]").lanes == 4);
  CHECK(add("bf16[4096]").lanes == 8);
  CHECK(mapping_of("feed %x: bf16[4096]\n%y = cast(%x) {to=\"f32\"}\noutput \"y\" %y").lanes == 8);
  CHECK(mapping_of("feed %x: bf16[4096]\n%y = cast(%x) {to=\"f64\"}\noutput \"y\" %y").lanes == 4);
}

TEST_CASE("lanes divide the vector axis, so that no access is masked") {
  CHECK(add("bf16[4095]").lanes == 1);
  CHECK(add("bf16[4090]").lanes == 2);
  CHECK(add("bf16[3,52]").lanes == 4);
}

TEST_CASE("an elementwise nest has a thread per vector") {
  const gpu::ThreadMapping mapping = add("f32[1000,100]");
  CHECK(mapping.items == 25000);
  CHECK(mapping.slices == 1);
  CHECK(mapping.steps == 1);
  CHECK(mapping.blocks() == 98);
}

TEST_CASE("a short row belongs to a warp, a long one to a block") {
  const gpu::ThreadMapping warp = sum("f32[100000,768]", "1");
  CHECK(warp.items == 100000);
  CHECK(warp.steps == 96);
  CHECK(warp.slices == gpu::kWarp);
  CHECK(warp.turns() == 3);
  CHECK(warp.threads == 128);
  const gpu::ThreadMapping block = sum("f32[100000,50304]", "1");
  CHECK(block.slices == 256);
  CHECK(block.threads == 256);
  CHECK(block.items_per_block() == 1);
  CHECK(sum("f32[100000,24]", "1").slices == 4);
}

TEST_CASE("few rows get more threads each") {
  CHECK(sum("f32[100000,1024]", "1").slices == 32);
  CHECK(sum("f32[10,1024]", "1").slices == 128);
}

TEST_CASE("rows of few steps per thread stay in registers while those suffice") {
  CHECK(sum("f32[100000,768]", "1").is_kept);
  CHECK_FALSE(sum("f32[100000,50304]", "1").is_kept);
  // Each product of an element waits until the sum over all of them is known.
  const auto kept_products = [](int count) {
    std::string products = "feed %x: f32[100000,2048]\n";
    std::string results;
    std::string total = "%x";
    for (int n = 0; n < count; ++n) {
      const std::string i = std::to_string(n);
      products += "feed %a" + i + ": f32[100000,2048]\n%b" + i + " = mul(%x, %a" + i + ")\n%t" + i +
                  " = add(" + total + ", %b" + i + ")\n";
      results += "%d" + i + " = mul(%b" + i + ", %s)\noutput \"d" + i + "\" %d" + i + "\n";
      total = "%t" + i;
    }
    return mapping_of(products + "%s = reduce_sum(" + total + ") {axes=[1]}\n" + results);
  };
  CHECK(kept_products(3).turns() == 4);
  CHECK(kept_products(3).is_kept);
  CHECK(kept_products(4).turns() == 4);
  CHECK_FALSE(kept_products(4).is_kept);
}

TEST_CASE("a thread takes steps together until their loads are many bytes") {
  CHECK(sum("bf16[100000,50304]", "1").together == 8);
  CHECK(sum("f32[100000,50304]", "1").together == 4);
  CHECK(sum("f64[100000,50304]", "1").together == 2);
  CHECK(sum("f32[100000,768]", "1").together == 3);
  CHECK(add("f32[4096]").together == 1);
}

TEST_CASE("columns are shared by threads until the GPU is full") {
  CHECK(sum("f32[500,4194304]", "0").slices == 1);
  const gpu::ThreadMapping narrow = sum("f32[5000,64]", "0");
  CHECK(narrow.items == 8);
  CHECK(narrow.slices == 32);
  CHECK(narrow.items_per_block() == 8);
  CHECK(sum("f32[3,64]", "0").slices == 4);
}

TEST_CASE("the order of a sum does not depend on what is fused with it") {
  for (const std::string axis : {"0", "1"}) {
    const gpu::ThreadMapping alone = sum("f32[96,704]", axis);
    const gpu::ThreadMapping fused = mapping_of(
        "feed %h: bf16[96,704]\nfeed %d: f64[96,704]\n%w = cast(%h) {to=\"f64\"}\n"
        "%p = mul(%w, %d)\n%x = cast(%p) {to=\"f32\"}\n%y = reduce_sum(%x) {axes=[" +
        axis + "]}\noutput \"y\" %y");
    CHECK(fused.slices == alone.slices);
    CHECK(fused.steps == alone.steps);
    CHECK(fused.lanes == alone.lanes);
  }
}

TEST_CASE("a nest without elements has no blocks") { CHECK(add("f32[0]").blocks() == 0); }
