// Which values readers compute again.
#include "passes/recompute_elementwise.h"

#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// The text of what is left, without the first line.
std::string recomputed(const std::string& text) {
  const Graph graph = eliminate_dead_nodes(recompute_elementwise(parse_graph(text)));
  verify(graph, "recompute-elementwise");
  const std::string result = to_text(graph);
  return result.substr(result.find('\n') + 1);
}

// Whether nothing changes.
bool stays(const std::string& text) {
  const std::string before = to_text(eliminate_dead_nodes(parse_graph(text)));
  return recomputed(text) == before.substr(before.find('\n') + 1);
}

const std::string kOutput = "output \"y\" %y\noutput \"z\" %z\n";

}  // namespace

TEST_CASE("the backward phase computes a function of what is in memory again") {
  CHECK(recomputed("feed %x: f32[64,128]\n%t = tanh(%x)\n%y = neg(%t)\n"
                   "%z = mul(%t, %t) @backward\n" +
                   kOutput) ==
        "feed %x: f32[64,128]\n%t = tanh(%x)\n%y = neg(%t)\n%tanh = tanh(%x) @backward\n"
        "%z = mul(%tanh, %tanh) @backward\n" +
            kOutput);
}

TEST_CASE("a chain begins at the narrower value, and statistics of rows are read") {
  const std::string result = recomputed(
      "feed %h: bf16[64,128]\n%x = cast(%h) {to=\"f32\"}\n%m = reduce_max(%x) {axes=[1]}\n"
      "%d = sub(%x, %m)\n%y = exp(%d)\n%z = neg(%d) @backward\n" +
      kOutput);
  CHECK(result.find("%cast = cast(%h)") != std::string::npos);
  CHECK(result.find("%sub = sub(%cast, %m) @backward\n%z = neg(%sub) @backward") !=
        std::string::npos);
}

TEST_CASE("a sum of two tensors is kept, because it has fewer bytes than both") {
  CHECK(
      stays("feed %a: f32[64,128]\nfeed %b: f32[64,128]\n%s = add(%a, %b)\n%y = neg(%s)\n"
            "%z = exp(%s) @backward\n" +
            kOutput));
}

TEST_CASE("what a contraction reads is in memory and is read there by all") {
  CHECK(
      stays("feed %a: f32[128,128]\n%t = tanh(%a)\n%y = matmul(%t, %a)\n"
            "%z = exp(%t) @backward\n" +
            kOutput));
}

TEST_CASE("readers of one phase get chains from narrower operands alone") {
  CHECK(stays("feed %a: f32[64,128]\n%t = tanh(%a)\n%y = neg(%t)\n%z = exp(%t)\n" + kOutput));
  CHECK(recomputed("feed %a: bf16[64,128]\n%t = cast(%a) {to=\"f32\"}\n%y = neg(%t)\n"
                   "%z = exp(%t)\n" +
                   kOutput) ==
        "feed %a: bf16[64,128]\n%cast = cast(%a) {to=\"f32\"}\n%y = neg(%cast)\n"
        "%cast_1 = cast(%a) {to=\"f32\"}\n%z = exp(%cast_1)\n" +
            kOutput);
}

TEST_CASE("expensive functions and small values are read") {
  CHECK(stays("feed %a: f32[64,128]\n%t = sin(%a)\n%y = neg(%t)\n%z = exp(%t) @backward\n" +
              kOutput));
  CHECK(stays("feed %a: f32[64]\n%t = tanh(%a)\n%y = neg(%t)\n%z = exp(%t) @backward\n" + kOutput));
}
