#include "passes/fuse.h"

#include <algorithm>

#include "passes/form_kernels.h"
#include "passes/group_graph.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string fused(const std::string& text) {
  Graph graph = parse_graph(text);
  return to_text(graph, fuse(graph));
}

}  // namespace

TEST_CASE("an elementwise chain is one kernel") {
  CHECK(fused("feed %x: f32[64,64]\nfeed %y: f32[64]\n%a = add(%x, %y)\n%b = tanh(%a)\n"
              "%c = mul(%b, %x)\noutput \"c\" %c") == "loop forward: add tanh mul (x, y) -> (c)\n");
}

TEST_CASE("softmax with its gradient's operands is one kernel") {
  CHECK(fused("feed %x: f32[64,64]\n%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n"
              "%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n%y = div(%e, %s)\noutput \"y\" %y") ==
        "loop forward: reduce_max sub exp reduce_sum div (x) -> (y)\n");
}

TEST_CASE("a reduction of rows and one of columns stay apart") {
  CHECK(fused("feed %x: f32[640,640]\n%e = neg(%x)\n%r = reduce_sum(%e) {axes=[1]}\n"
              "%c = reduce_sum(%e) {axes=[0]}\noutput \"r\" %r\noutput \"c\" %c") ==
        "loop forward: neg reduce_sum (x) -> (e, r)\nloop forward: reduce_sum (e) -> (c)\n");
}

TEST_CASE("a reshape alone is a view, inside a chain it is code") {
  CHECK(fused("feed %x: f32[64,64]\n%r = reshape(%x) {shape=[4096]}\noutput \"r\" %r") ==
        "view forward: reshape (x) -> (r)\n");
  CHECK(fused("feed %x: f32[64,64]\n%a = exp(%x)\n%r = reshape(%a) {shape=[4096]}\n%b = neg(%r)\n"
              "output \"b\" %b") == "loop forward: exp reshape neg (x) -> (b)\n");
}

TEST_CASE("a matrix product takes what follows as its epilogue") {
  CHECK(fused("feed %x: f32[64,32]\nfeed %w: f32[32,48]\nfeed %b: f32[48]\nfeed %z: f32[64,48]\n"
              "%p = matmul(%x, %w)\n%a = add(%p, %b)\n%g = tanh(%a)\n%y = add(%g, %z)\n"
              "output \"y\" %y") == "anchor forward: matmul add tanh add (x, w, b, z) -> (y)\n");
}

TEST_CASE("an epilogue takes what it alone reads, but not what the product reads") {
  CHECK(fused("feed %x: bf16[64,32]\nfeed %w: f32[32,48]\nfeed %z: bf16[64,48]\n"
              "%n = cast(%w) {to=\"bf16\"}\n%p = matmul(%x, %n) {result=\"f32\"}\n"
              "%f = cast(%z) {to=\"f32\"}\n%t = tanh(%f)\n%y = mul(%p, %t)\n"
              "output \"y\" %y") ==
        "loop forward: cast (w) -> (n)\n"
        "anchor forward: matmul cast tanh mul (x, n, z) -> (y)\n");
}

TEST_CASE("a rounded product is widened by the loops that read it") {
  CHECK(fused("feed %x: bf16[64,32]\nfeed %w: bf16[32,48]\nfeed %z: f32[64,48]\n"
              "%p = matmul(%x, %w)\n%f = cast(%p) {to=\"f32\"}\n%a = mul(%f, %z)\n"
              "%s = reduce_sum(%a) {axes=[1]}\noutput \"s\" %s") ==
        "anchor forward: matmul (x, w) -> (p)\n"
        "loop forward: cast mul reduce_sum (p, z) -> (s)\n");
  CHECK(fused("feed %x: bf16[64,32]\nfeed %w: bf16[32,48]\nfeed %v: bf16[48,8]\n"
              "%p = matmul(%x, %w)\n%f = cast(%p) {to=\"f32\"}\n%t = tanh(%f)\n"
              "%n = cast(%t) {to=\"bf16\"}\n%y = matmul(%n, %v)\noutput \"y\" %y") ==
        "anchor forward: matmul cast tanh cast (x, w) -> (n)\n"
        "anchor forward: matmul (n, v) -> (y)\n");
}

TEST_CASE("a widened value is reshaped by the loop that reads it, and not where it was rounded") {
  CHECK(fused("feed %x: bf16[4096,256]\nfeed %g: f32[4096,256]\nfeed %w: bf16[256,64]\n"
              "%c = cast(%x) {to=\"f32\"}\n%p = mul(%c, %g)\n%m = reduce_sum(%p) {axes=[1]}\n"
              "%h = sub(%p, %m)\n%n = cast(%h) {to=\"bf16\"}\n%y = matmul(%n, %w)\n"
              "%f = cast(%n) {to=\"f32\"}\n%r = reshape(%f) {shape=[1,4096,256]}\n"
              "%q = reshape(%r) {shape=[1,32,128,256]}\n%s = reduce_sum(%q) {axes=[2]}\n"
              "output \"s\" %s\noutput \"y\" %y") ==
        "loop forward: cast mul reduce_sum sub cast (x, g) -> (n)\n"
        "anchor forward: matmul (n, w) -> (y)\n"
        "loop forward: cast reshape reshape reduce_sum (n) -> (s)\n");
}

TEST_CASE("heads are split in the epilogue") {
  CHECK(fused("feed %x: f32[128,32]\nfeed %w: f32[32,48]\n%p = matmul(%x, %w)\n"
              "%r = reshape(%p) {shape=[2,64,3,16]}\n%t = transpose(%r) {perm=[0,2,1,3]}\n"
              "output \"t\" %t") == "anchor forward: matmul reshape transpose (x, w) -> (t)\n");
}

TEST_CASE("a reduction after a matrix product is a kernel of its own") {
  CHECK(fused("feed %x: f32[64,32]\nfeed %w: f32[32,48]\n%p = matmul(%x, %w)\n%e = neg(%p)\n"
              "%s = reduce_sum(%e) {axes=[1]}\noutput \"s\" %s") ==
        "anchor forward: matmul neg (x, w) -> (e)\nloop forward: reduce_sum (e) -> (s)\n");
}

TEST_CASE("gradients accumulate in the epilogue") {
  CHECK(fused("feed %x: f32[64,32]\nfeed %d: f32[64,48]\nstate accumulator %g: f32[32,48] = zero\n"
              "%p = matmul(%x, %d) {transpose_a=1} @backward\n%a = accumulate(%g, %p) @backward\n"
              "%u = neg(%a) @update\noutput \"u\" %u") ==
        "anchor backward: matmul accumulate (x, d, g) -> (a)\nloop update: neg (a) -> (u)\n");
}

TEST_CASE("on a CPU a reduction computes what an epilogue would store for it") {
  const Graph graph = parse_graph(
      "feed %x: f32[4096,256]\nfeed %w: f32[256,64]\nfeed %z: f32[4096,64]\n"
      "%p = matmul(%x, %w)\n%m = mul(%p, %z)\n%a = reduce_sum(%m) {axes=[0]}\n"
      "output \"p\" %p\noutput \"a\" %a");
  CHECK(to_text(graph, fuse(graph, {}, kCpuTarget)) ==
        "anchor forward: matmul (x, w) -> (p)\n"
        "loop forward: mul reduce_sum (p, z) -> (a)\n");
  CHECK(to_text(graph, fuse(graph, {}, kHopperTarget)) ==
        "anchor forward: matmul mul (x, w, z) -> (p, m)\n"
        "loop forward: reduce_sum (m) -> (a)\n");
}

TEST_CASE("on a CPU sums of one layer over rows of one size are one kernel") {
  const auto sums = [](const std::string& layer) {
    return fused(
        "feed %x: f32[2048,64]\nfeed %y: f32[2048,64]\nfeed %z: f32[2048,32]\n"
        "%a = reduce_sum(%x) {axes=[0]} @backward #1 \"h.0.fc\"\n"
        "%b = reduce_sum(%y) {axes=[0]} @backward #2 \"" +
        layer +
        ".norm\"\n"
        "%c = reduce_sum(%z) {axes=[0]} @backward #3 \"h.0.out\"\n"
        "output \"a\" %a\noutput \"b\" %b\noutput \"c\" %c");
  };
  CHECK(sums("h.0") ==
        "loop backward: reduce_sum reduce_sum (x, y) -> (a, b)\n"
        "loop backward: reduce_sum (z) -> (c)\n");
  CHECK(sums("h.1") ==
        "loop backward: reduce_sum (x) -> (a)\nloop backward: reduce_sum (y) -> (b)\n"
        "loop backward: reduce_sum (z) -> (c)\n");
}

TEST_CASE("sums of a layer through which a pipeline may be cut stay apart") {
  const Graph graph = parse_graph(
      "feed %x: f32[2048,64]\nfeed %y: f32[2048,64]\n"
      "%a = reduce_sum(%x) {axes=[0]} @backward #1 \"h.0.fc\"\n"
      "%b = reduce_sum(%y) {axes=[0]} @backward #2 \"h.0.norm\"\n"
      "output \"a\" %a\noutput \"b\" %b");
  CHECK(fuse(graph, {}).size() == 1);
  CHECK(fuse(graph, {0, 0}).size() == 2);
}

TEST_CASE("a merge that would make two groups need each other is refused") {
  // a -> matmul -> c and a -> c: the matrix product stands between the loops.
  CHECK(fused("feed %x: f32[64,64]\nfeed %w: f32[64,64]\n%a = exp(%x)\n%p = matmul(%a, %w)\n"
              "%t = softplus(%a)\n%c = mul(%p, %t)\noutput \"c\" %c\noutput \"t\" %t") ==
        "loop forward: exp softplus (x) -> (a, t)\nanchor forward: matmul mul (a, w, t) -> (c)\n");
}

TEST_CASE("phases do not mix") {
  CHECK(fused("feed %x: f32[64]\n%a = exp(%x)\n%b = neg(%a) @backward\noutput \"b\" %b") ==
        "loop forward: exp (x) -> (a)\nloop backward: neg (a) -> (b)\n");
}

TEST_CASE("an expensive value is not computed once per element of a larger domain") {
  CHECK(fused("feed %x: f32[4000]\nfeed %y: f32[4000,1]\n%e = erf(%x)\n%f = pow(%e, %x)\n"
              "%z = mul(%f, %y)\noutput \"z\" %z") ==
        "loop forward: erf pow (x) -> (f)\nloop forward: mul (f, y) -> (z)\n");
}

TEST_CASE("loops that read the same tensor merge") {
  CHECK(fused("feed %x: f32[640,640]\nfeed %d: f32[640,640]\n%p = mul(%x, %d)\n"
              "%a = reduce_sum(%p) {axes=[0]}\n%b = reduce_sum(%d) {axes=[0]}\noutput \"a\" %a\n"
              "output \"b\" %b") == "loop forward: mul reduce_sum reduce_sum (x, d) -> (a, b)\n");
}

TEST_CASE("one kernel checks the indices of one node") {
  CHECK(fused("feed %t: f32[5,64]\nfeed %i: i64[64]\nfeed %j: i64[64]\n"
              "%a = gather(%t, %i) {axis=0}\n%b = gather(%t, %j) {axis=0}\n%c = add(%a, %b)\n"
              "output \"c\" %c") ==
        "loop forward: gather (t, i) -> (a)\nloop forward: gather add (t, j, a) -> (c)\n");
}

TEST_CASE("equal groups have equal symbols, others do not") {
  Graph graph = parse_graph(
      "feed %x: f32[64,64]\nfeed %y: f32[64,64]\nfeed %z: f32[64,65]\n%a = exp(%x)\n%b = exp(%y)\n"
      "%c = exp(%z)\noutput \"a\" %a\noutput \"b\" %b\noutput \"c\" %c");
  std::vector<Group> groups = fuse(graph);
  REQUIRE(groups.size() == 3);
  std::string first = form_kernel(graph, groups[0]).symbol;
  CHECK(form_kernel(graph, groups[1]).symbol == first);
  CHECK(form_kernel(graph, groups[2]).symbol != first);
  CHECK(first.substr(0, 7) == "k_loop_");
}

TEST_CASE("a third group counts even if it is entered behind the place where it is left") {
  Graph graph = parse_graph(
      "feed %x: f32[64]\n%early = exp(%x)\n%from = neg(%x)\n%to = add(%from, %early)\n"
      "%late = mul(%from, %x)\noutput \"to\" %to\noutput \"late\" %late");
  GroupGraph groups(graph);
  CHECK_FALSE(groups.would_cycle(1, 2));
  groups.merge(0, 3, groups.merged(0, 3));
  CHECK(groups.would_cycle(1, 2));
  CHECK(groups.would_cycle(2, 1));
}

TEST_CASE("copies of two layers that read one table stay with their readers") {
  const std::string text =
      "feed %t: f32[64,64]\nfeed %x: f32[64,64]\nfeed %w: f32[64,64]\n"
      "%a = mul(%x, %t) #1\n%p = matmul(%a, %w)\n%b = mul(%p, %t) #2\n%q = matmul(%b, %w)\n"
      "%b1 = mul(%p, %t) @backward #2\n%d = matmul(%b1, %q) @backward\n"
      "%a1 = mul(%x, %t) @backward ";
  const std::string ends = "\n%e = matmul(%a1, %d) @backward\noutput \"e\" %e";
  const auto merges = [&](const std::string& id) {
    return fused(text + id + ends).find("loop backward: mul mul") != std::string::npos;
  };
  CHECK_FALSE(merges("#1"));
  CHECK(merges("#77"));
}

TEST_CASE("products are added to a sum as they come") {
  CHECK(fused("feed %x: f32[64,64]\nfeed %w: f32[64,64]\n%a = matmul(%x, %w)\n"
              "%b = matmul(%w, %x)\n%s = add(%a, %b)\n%c = matmul(%w, %w)\n%t = add(%s, %c)\n"
              "output \"t\" %t") ==
        "anchor forward: matmul (x, w) -> (a)\nanchor forward: matmul add (w, x, a) -> (s)\n"
        "anchor forward: matmul add (w, s) -> (t)\n");
}

TEST_CASE("a norm is one kernel, however many rows it has") {
  const std::string rows = GENERATE("64", "8192", "262144");
  const std::string groups = fused(
      "feed %x: f32[" + rows +
      ",768]\nfeed %g: f32[768]\n%s = reduce_sum(%x) {axes=[1]}\n"
      "constant %n: f32[] = [768]\nconstant %e: f32[] = [1e-5]\n%m = div(%s, %n)\n"
      "%c = sub(%x, %m)\n%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[1]}\n%d = div(%v, %n)\n"
      "%a = add(%d, %e)\n%r = rsqrt(%a)\n%h = mul(%c, %r)\n%y = mul(%h, %g)\noutput \"y\" %y");
  CHECK(std::count(groups.begin(), groups.end(), '\n') == 1);
}
