// A value's bits depend on its node and inputs alone.
#include "codegen/run_graph.h"

using namespace sgtc;
using namespace sgtc::test;

TEST_CASE("softmax and its gradient have the same bits fused, unfused and split") {
  check_bits(
      "feed %x: f32[40,77]\nfeed %d: f32[40,77]\n%m = reduce_max(%x) {axes=[1]}\n"
      "%c = sub(%x, %m)\n%e = exp(%c)\n%s = reduce_sum(%e) {axes=[1]}\n%y = div(%e, %s)\n"
      "%p = mul(%y, %d)\n%q = reduce_sum(%p) {axes=[1]}\n%r = sub(%d, %q)\n"
      "%g = mul(%r, %y)\noutput \"y\" %y\noutput \"g\" %g");
}

TEST_CASE("column sums have the same bits fused, unfused and split") {
  check_bits(
      "feed %x: f32[300,133]\nfeed %d: f32[300,133]\n%p = mul(%x, %d)\n"
      "%a = reduce_sum(%p) {axes=[0]}\n%b = reduce_sum(%d) {axes=[0]}\n"
      "output \"a\" %a\noutput \"b\" %b");
}

TEST_CASE("normalisation over channels has the same bits fused, unfused and split") {
  check_bits(
      "feed %x: f32[4,6,5,7]\nfeed %g: f32[6,1,1]\n%s = reduce_sum(%x) {axes=[0,2,3]}\n"
      "constant %i: f32[] = [0.007142857]\n%m = mul(%s, %i)\n%c = sub(%x, %m)\n"
      "%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[0,2,3]}\n%r = rsqrt(%v)\n"
      "%n = mul(%c, %r)\n%y = mul(%n, %g)\noutput \"y\" %y\noutput \"v\" %v");
}

TEST_CASE("groups of channels are normalised through a reshape") {
  check_bits(
      "feed %x: f32[2,6,3,5]\nfeed %g: f32[6,1,1]\n%a = reshape(%x) {shape=[2,2,45]}\n"
      "%e = tanh(%a)\n%s = reduce_sum(%e) {axes=[2]}\n%c = sub(%e, %s)\n"
      "%b = reshape(%c) {shape=[2,6,3,5]}\n%y = mul(%b, %g)\noutput \"y\" %y");
}

TEST_CASE("many rows in one block and one row over many blocks") {
  check_bits(
      "feed %x: f32[5000,8]\n%s = reduce_sum(%x) {axes=[1]}\n%y = div(%x, %s)\n"
      "output \"y\" %y");
  check_bits(
      "feed %x: f32[3,40001]\nfeed %b: f32[3,1]\n%y = mul(%x, %b)\n%z = exp(%y)\n"
      "output \"y\" %y\noutput \"z\" %z");
}

TEST_CASE("an optimizer's step in place") {
  const std::string text =
      "feed %p: f32[50,30]\nfeed %m: f32[50,30]\nfeed %v: f32[50,30]\nfeed %g: f32[50,30]\n"
      "feed %lr: f32[]\nconstant %b: f32[] = [0.9]\nconstant %c: f32[] = [0.1]\n"
      "constant %eps: f32[] = [1e-8]\n%m1 = mul(%m, %b)\n%g1 = mul(%g, %c)\n%mn = add(%m1, %g1)\n"
      "%gg = mul(%g1, %g)\n%v1 = mul(%v, %b)\n%vn = add(%v1, %gg)\n%va = abs(%vn)\n"
      "%sq = sqrt(%va)\n%den = add(%sq, %eps)\n%u = div(%mn, %den)\n%ul = mul(%u, %lr)\n"
      "%pn = sub(%p, %ul)\noutput \"p\" %pn\noutput \"m\" %mn\noutput \"v\" %vn";
  check_bits(text);
  Graph graph = parse_graph(text);
  std::vector<Group> groups = fuse(graph);
  REQUIRE(groups.size() == 1);
  KernelSpec spec = form_kernel(graph, groups[0]);
  int64_t shared = 0;
  for (const KernelArgument& argument : spec.arguments) shared += !argument.may_alias.empty();
  CHECK(shared == 3);
}

TEST_CASE("sums of several chains have the same bits fused, unfused and split") {
  check_bits(
      "feed %x: f32[2,4,9,33,19]\nfeed %d: f32[2,4,9,33,19]\n%p = mul(%x, %d)\n"
      "%a = reduce_sum(%p) {axes=[0,2,3]}\n%b = reduce_sum(%x) {axes=[0,2,3]}\n"
      "output \"a\" %a\noutput \"b\" %b");
  check_bits(
      "feed %x: f32[7,3,5,47]\n%s = reduce_sum(%x) {axes=[0,2,3]}\n%c = sub(%x, %s)\n"
      "%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[0,2,3]}\n"
      "output \"c\" %c\noutput \"v\" %v");
}
