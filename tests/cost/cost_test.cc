// Operations and bytes.
#include "cost/cost.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

// flops of the only node of a graph text.
int64_t flops(const std::string& text) {
  const Graph graph = parse_graph(text);
  REQUIRE(graph.nodes.size() == 1);
  return flops_of(graph, graph.nodes[0]);
}

}  // namespace

TEST_CASE("a matmul counts a multiply and an add per product") {
  CHECK(flops("feed %a: f32[2,3]\nfeed %b: f32[3,5]\n%y = matmul(%a, %b)") == 2 * 2 * 3 * 5);
  CHECK(flops("feed %a: f32[7,3,2]\nfeed %b: f32[3,5]\n%y = matmul(%a, %b) {transpose_a=1}") ==
        2 * 7 * 2 * 3 * 5);
}

TEST_CASE("elementwise operators count results, reductions operands, movement nothing") {
  CHECK(flops("feed %a: f32[2,3]\nfeed %b: f32[3]\n%y = add(%a, %b)") == 6);
  CHECK(flops("feed %a: f32[2,3]\n%y = reduce_sum(%a) {axes=[1]}") == 6);
  CHECK(flops("feed %a: f32[2,3]\n%y = transpose(%a) {perm=[1,0]}") == 0);
}

TEST_CASE("causal attention counts half of the scores") {
  const std::string operands =
      "feed %q: f32[2,4,8,16]\nfeed %k: f32[2,4,8,16]\nfeed %v: f32[2,4,8,16]\n";
  const int64_t full = 2 * (2 * 4 * 8 * 8) * 32;
  CHECK(flops(operands + "%o, %m, %l = attention(%q, %k, %v) {scale=0.25, causal=0}") == full);
  CHECK(flops(operands + "%o, %m, %l = attention(%q, %k, %v) {scale=0.25, causal=1}") == full / 2);
}

TEST_CASE("a kernel's bytes are its inputs and outputs") {
  const Graph graph =
      parse_graph("feed %a: f32[4]\nfeed %b: f32[4]\n%c = add(%a, %b)\n%d = exp(%c)");
  Group group;
  group.nodes = {0, 1};
  group.inputs = {graph.find("a"), graph.find("b")};
  group.outputs = {graph.find("d")};
  KernelSpec kernel;
  fill_costs(graph, group, kernel);
  CHECK(kernel.flops == 8);
  CHECK(kernel.bytes == 48);
}

TEST_CASE("a gather reads the rows that it takes") {
  const Graph graph =
      parse_graph("feed %w: f32[1000,8]\nfeed %i: i64[4]\n%y = gather(%w, %i) {axis=0}");
  Group group;
  group.nodes = {0};
  group.inputs = {graph.find("w"), graph.find("i")};
  group.outputs = {graph.find("y")};
  KernelSpec kernel;
  fill_costs(graph, group, kernel);
  CHECK(kernel.bytes == 4 * 32 + 4 * 8 + 4 * 32);
}
