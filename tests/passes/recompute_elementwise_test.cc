// Which values readers compute again.
#include "passes/recompute_elementwise.h"

#include <regex>

#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// The text of what is left, without the first line, types of results and numbers of nodes.
std::string left_of(const Graph& graph) {
  static const std::regex types_and_numbers(R"(: \w+\[[0-9,]*\](?= =)| #[0-9]+)");
  const std::string text = to_text(eliminate_dead_nodes(graph));
  return std::regex_replace(text.substr(text.find('\n') + 1), types_and_numbers, "");
}

std::string recomputed(const std::string& text, const KernelTarget& target = kHopperTarget) {
  const Graph graph = recompute_elementwise(parse_graph(text), target);
  verify(graph, "recompute-elementwise");
  return left_of(graph);
}

// Whether nothing changes.
bool stays(const std::string& text) { return recomputed(text) == left_of(parse_graph(text)); }

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
  CHECK(result.find("%cast_2 = cast(%h) {to=\"f32\"} @backward\n"
                    "%sub = sub(%cast_2, %m) @backward\n%z = neg(%sub) @backward") !=
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

TEST_CASE("what a contraction reads through a reshape is read by all too") {
  CHECK(
      stays("feed %a: f32[128,128]\nfeed %b: f32[256,32]\n%t = tanh(%a)\n"
            "%r = reshape(%t) {shape=[2,64,128]}\n%q = reshape(%r) {shape=[64,256]}\n"
            "%y = matmul(%q, %b)\n%z = exp(%t) @backward\n" +
            kOutput));
}

TEST_CASE("a chain goes through a reshape that only loops read") {
  CHECK(recomputed("feed %a: f32[128,128]\n%t = tanh(%a)\n%r = reshape(%t) {shape=[64,256]}\n"
                   "%y = neg(%r)\n%z = exp(%r) @backward\n" +
                   kOutput) ==
        "feed %a: f32[128,128]\n%t = tanh(%a)\n%r = reshape(%t) {shape=[64,256]}\n%y = neg(%r)\n"
        "%tanh = tanh(%a) @backward\n%reshape = reshape(%tanh) {shape=[64,256]} @backward\n"
        "%z = exp(%reshape) @backward\n" +
            kOutput);
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

TEST_CASE("on a CPU a chain costs no more than its value in memory") {
  const std::string chain = "feed %a: f32[64,128]\n%s = mul(%a, %a)\n%t = tanh(%s)\n%y = neg(%t)\n";
  const std::string cheap = recomputed(chain + "%z = neg(%t) @backward\n" + kOutput, kCpuTarget);
  CHECK(cheap.find("%tanh = tanh(%mul) @backward\n%z = neg(%tanh) @backward") != std::string::npos);
  const std::string costly =
      "feed %a: f32[64,128]\n%r = tanh(%a)\n%s = tanh(%r)\n%t = tanh(%s)\n%u = neg(%t)\n"
      "%y = neg(%u)\n"
      "%z = exp(%u) @backward\n" +
      kOutput;
  const std::string kept = recomputed(costly, kCpuTarget);
  CHECK(kept.find("%neg = neg(%t) @backward\n%z = exp(%neg) @backward") != std::string::npos);
}

TEST_CASE("on a CPU what a product's epilogue has made of it is kept, not the product") {
  const std::string result = recomputed(
      "feed %a: f32[64,128]\nfeed %b: f32[128,128]\nfeed %c: f32[128]\n"
      "%m = matmul(%a, %b)\n%r = reshape(%m) {shape=[2,32,128]}\n%s = add(%r, %c)\n"
      "%t = tanh(%s)\n%y = neg(%t)\n%z = neg(%t) @backward\n" +
          kOutput,
      kCpuTarget);
  CHECK(result.find("%tanh = tanh(%s) @backward\n%z = neg(%tanh) @backward") != std::string::npos);
}

TEST_CASE("expensive functions and small values are read") {
  CHECK(stays("feed %a: f32[64,128]\n%t = sin(%a)\n%y = neg(%t)\n%z = exp(%t) @backward\n" +
              kOutput));
  CHECK(stays("feed %a: f32[64]\n%t = tanh(%a)\n%y = neg(%t)\n%z = exp(%t) @backward\n" + kOutput));
}
