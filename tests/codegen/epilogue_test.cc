// Elementwise nodes fused into contractions.
#include "codegen/emit_epilogue.h"
#include "codegen/module.h"
#include "codegen/run_graph.h"
#include "support/count.h"

using namespace sgtc;
using namespace sgtc::test;

namespace {

// All nodes but leaves in one kernel, and right.
void check_one_kernel(const std::string& text, double tolerance = 1e-5) {
  INFO(text);
  Graph graph = parse_graph(text);
  std::vector<Group> groups = fuse(graph);
  CHECK(to_text(graph, groups) == to_text(graph, {groups[0]}));
  check_graph(graph, {}, tolerance);
  RunOptions split;
  split.blocks_per_call = 1;
  split.share_bytes = true;
  check_graph(graph, split, tolerance);
}

// How often what a kernel calls ahead of its stores prefetches to read, and to write.
std::pair<size_t, size_t> prefetches(const std::string& text) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph);
  REQUIRE(groups.size() == 1);
  const KernelSpec spec = form_kernel(graph, groups[0]);
  llvm::LLVMContext context;
  llvm::Module module("prefetch", context);
  emit_tile_prefetch(module, spec);
  check_module(module, spec.symbol, "as emitted");
  const std::string emitted = to_text(module);
  return {count(emitted, ", i32 0, i32 2, i32 1)"), count(emitted, ", i32 1, i32 2, i32 1)")};
}

}  // namespace

TEST_CASE("what an epilogue reads and writes is prefetched, once where both are one place") {
  const std::string product = "feed %x: f32[37,24]\nfeed %w: f32[24,40]\n%p = matmul(%x, %w)\n";
  CHECK(prefetches(product + "output \"p\" %p") == std::pair<size_t, size_t>(0, 1));
  CHECK(prefetches(product + "feed %z: f32[37,40]\n%y = add(%p, %z)\noutput \"y\" %y") ==
        std::pair<size_t, size_t>(1, 1));
  CHECK(prefetches(product + "%t = transpose(%p) {perm=[1,0]}\noutput \"t\" %t") ==
        std::pair<size_t, size_t>(0, 0));
  CHECK(prefetches("state accumulator %s: f32[37,40] = zero\n" + product +
                   "%y = accumulate(%s, %p)\noutput \"p\" %y") == std::pair<size_t, size_t>(1, 0));
}

TEST_CASE("bias, activation and residual of any width") {
  for (const std::string n : {"1", "5", "16", "40", "129"}) {
    check_one_kernel("feed %x: f32[37,24]\nfeed %w: f32[24," + n + "]\nfeed %b: f32[" + n +
                     "]\nfeed %z: f32[37," + n +
                     "]\n%p = matmul(%x, %w)\n%a = add(%p, %b)\n"
                     "%t = tanh(%a)\n%y = add(%t, %z)\noutput \"y\" %y\noutput \"a\" %a");
  }
}

TEST_CASE("heads are split and joined where the product is stored") {
  for (const std::string d : {"16", "5"}) {
    const std::string width = d == "16" ? "48" : "15";
    check_graph(
        parse_graph("feed %x: f32[42,24]\nfeed %w: f32[24," + width + "]\nfeed %b: f32[" + width +
                    "]\n%p = matmul(%x, %w)\n%a = add(%p, %b)\n%r = reshape(%a) {shape=[2,21,3," +
                    d + "]}\n%t = transpose(%r) {perm=[0,2,1,3]}\noutput \"t\" %t"),
        {}, 1e-5);
  }
  check_graph(
      parse_graph("feed %q: f32[2,3,21,8]\nfeed %v: f32[2,3,8,32]\n%p = matmul(%q, %v)\n"
                  "%t = transpose(%p) {perm=[0,2,1,3]}\n%r = reshape(%t) {shape=[2,21,96]}\n"
                  "%s = neg(%r)\noutput \"s\" %s"),
      {}, 1e-5);
}

TEST_CASE("scores are scaled and masked") {
  check_one_kernel(
      "feed %q: f32[2,3,21,8]\nfeed %k: f32[2,3,19,8]\nfeed %m: bool[2,1,1,19]\n"
      "constant %c: f32[] = [0.35]\nconstant %low: f32[] = [-1e9]\n"
      "%p = matmul(%q, %k) {transpose_b=1}\n%s = mul(%p, %c)\n"
      "%y = where(%m, %s, %low)\noutput \"y\" %y");
}

TEST_CASE("products in narrow types are rounded before the epilogue") {
  for (const std::string type : {"f16", "bf16"}) {
    check_graph(
        parse_graph("feed %x: " + type + "[17,24]\nfeed %w: " + type + "[24,40]\nfeed %b: " + type +
                    "[40]\n%p = matmul(%x, %w)\n%a = add(%p, %b)\n%y = cast(%a) {to=\"f32\"}\n"
                    "output \"y\" %y\noutput \"p\" %p"),
        {}, 1e-2);
  }
}

TEST_CASE("convolutions with bias and activation") {
  check_one_kernel(
      "feed %x: f32[2,3,9,7]\nfeed %w: f32[5,3,3,3]\nfeed %b: f32[5,1,1]\n"
      "constant %z: f32[] = [0]\n%p = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], "
      "dilations=[1,1], groups=1}\n%a = add(%p, %b)\n%y = max(%a, %z)\n"
      "output \"y\" %y");
}
