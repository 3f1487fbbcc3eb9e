// What shares a kernel on a GPU.
#include "passes/fuse.h"
#include "passes/recompute_elementwise.h"
#include "passes/relax_functions.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

size_t kernels(const std::string& text) {
  const Graph graph = relax_functions(recompute_elementwise(parse_graph(text)));
  size_t count = 0;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) count += has_code(group) ? 1 : 0;
  return count;
}

const std::string kRows = "[32768,768]";

std::string norm(const std::string& from) {
  return "%s = reduce_sum(" + from +
         ") {axes=[1]}\nconstant %i: f32[] = [0.001302]\n%m = mul(%s, %i)\n%c = sub(" + from +
         ", %m)\n%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[1]}\n%w = mul(%v, %i)\n"
         "constant %eps: f32[] = [1e-5]\n%a = add(%w, %eps)\n%r = rsqrt(%a)\n%n = mul(%c, %r)\n";
}

}  // namespace

TEST_CASE("a layer norm is one kernel, with the residual addition before it") {
  CHECK(kernels("feed %h: bf16" + kRows + "\nfeed %g: f32[768]\n%x = cast(%h) {to=\"f32\"}\n" +
                norm("%x") +
                "%k = mul(%n, %g)\n%y = cast(%k) {to=\"bf16\"}\noutput \"y\" %y\noutput \"m\" %m\n"
                "output \"r\" %r") == 1);
  CHECK(kernels("feed %o: bf16" + kRows + "\nfeed %p: bf16" + kRows +
                "\n%h = add(%o, %p)\n%x = cast(%h) {to=\"f32\"}\n" + norm("%x") +
                "%y = cast(%n) {to=\"bf16\"}\noutput \"y\" %y\noutput \"h\" %h") == 1);
}

TEST_CASE("the gradient of a layer norm is one kernel of rows and one of columns") {
  CHECK(kernels("feed %h: bf16" + kRows + "\nfeed %e: bf16" + kRows +
                "\nfeed %g: f32[768]\nfeed %m: f32[32768,1]\nfeed %r: f32[32768,1]\n"
                "%x = cast(%h) {to=\"f32\"}\n%c = sub(%x, %m)\n%n = mul(%c, %r)\n"
                "%d = cast(%e) {to=\"f32\"}\n%a = mul(%d, %g)\n%p = mul(%a, %n)\n"
                "%s = reduce_sum(%a) {axes=[1]}\n%t = reduce_sum(%p) {axes=[1]}\n"
                "%w = mul(%n, %t)\n%j = sub(%a, %s)\n%k = sub(%j, %w)\n%l = mul(%k, %r)\n"
                "%y = cast(%l) {to=\"bf16\"}\noutput \"y\" %y\n%dn = mul(%d, %n)\n"
                "%dg = reduce_sum(%dn) {axes=[0]}\n%db = reduce_sum(%d) {axes=[0]}\n"
                "output \"dg\" %dg\noutput \"db\" %db") == 2);
}

TEST_CASE("a softmax is one kernel, of short and of long rows") {
  for (const std::string columns : {"1024", "50304"}) {
    CHECK(kernels("feed %h: bf16[4096," + columns + "]\n%x = cast(%h) {to=\"f32\"}\n" +
                  "%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
                  "%s = reduce_sum(%e) {axes=[1]}\n%p = div(%e, %s)\n"
                  "%y = cast(%p) {to=\"bf16\"}\noutput \"y\" %y") == 1);
  }
}

TEST_CASE("readers of one large value share a kernel") {
  CHECK(kernels("feed %x: f32[4096,1024]\n%a = exp(%x)\n%b = neg(%x)\noutput \"a\" %a\n"
                "output \"b\" %b") == 1);
}

TEST_CASE("rows and columns do not meet in a kernel") {
  CHECK(kernels("feed %x: f32[4096,1024]\n%a = reduce_sum(%x) {axes=[0]}\n"
                "%b = reduce_sum(%x) {axes=[1]}\noutput \"a\" %a\noutput \"b\" %b") == 2);
}
