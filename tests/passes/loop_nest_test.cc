#include "passes/loop_nest.h"

#include <algorithm>

#include "passes/build_loop_nest.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::optional<LoopNest> nest_of(const Graph& graph) {
  NestRequest request;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    request.nodes.push_back(id);
  }
  for (const Output& output : graph.outputs) request.outputs.push_back(output.value);
  return build_loop_nest(graph, request);
}

std::string nest_text(const std::string& text) {
  Graph graph = parse_graph(text);
  std::optional<LoopNest> nest = nest_of(graph);
  return nest ? to_text(*nest) : "refused\n";
}

}  // namespace

TEST_CASE("contiguous dimensions are one loop") {
  CHECK(nest_text("feed %x: f32[3,4,5]\n%y = neg(%x)\noutput \"y\" %y") ==
        "domain [60] vector 0\n"
        "argument0 f32[60] read\n"
        "argument1 f32[60] written\n"
        "e0 = f32 load argument0[a0]\n"
        "e1 = f32 neg f32 e0\n"
        "argument1[a0] = e1\n");
}

TEST_CASE("a transpose permutes the strides of a load") {
  CHECK(nest_text("feed %x: f32[40,50]\n%y = transpose(%x) {perm=[1,0]}\noutput \"y\" %y") ==
        "domain [50, 40] vector 1\n"
        "argument0 f32[2000] read\n"
        "argument1 f32[2000] written\n"
        "e0 = f32 load argument0[a0 + 50*a1]\n"
        "argument1[40*a0 + a1] = e0\n");
}

TEST_CASE("a row reduction has lanes, its result is a row value") {
  CHECK(nest_text("feed %x: f32[4,50]\n%s = reduce_sum(%x) {axes=[1]}\n%y = div(%x, %s)\n"
                  "output \"y\" %y") ==
        "domain [4, 50r] lanes vector 1\n"
        "argument0 f32[200] read\n"
        "argument1 f32[200] written\n"
        "e0 = f32 load argument0[50*a0 + a1]\n"
        "e1 = f32 reduce_sum f32 e0\n"
        "e2 = f32 div f32 e0 f32 e1\n"
        "argument1[50*a0 + a1] = e2\n");
}

TEST_CASE("a pad guards its load") {
  CHECK(
      nest_text("feed %x: f32[40]\nconstant %v: f32[] = [1]\n%y = pad(%x, %v) {low=[2], high=[3]}\n"
                "output \"y\" %y") ==
      "domain [45] vector 0\n"
      "argument0 f32[40] read\n"
      "argument1 f32[45] written\n"
      "e0 = f32 constant 0x1p+0 0\n"
      "e1 = f32 load argument0[a0 + -2] if 0 <= a0 + -2 < 40\n"
      "e2 = f32 select f32 e1 f32 e0 if 0 <= a0 + -2 < 40\n"
      "argument1[a0] = e2\n");
}

TEST_CASE("a reshape splits a loop") {
  CHECK(nest_text("feed %x: f32[6,40]\nfeed %b: f32[3,1]\n%n = neg(%x)\n"
                  "%r = reshape(%n) {shape=[2,3,40]}\n%y = mul(%r, %b)\n"
                  "%z = reshape(%y) {shape=[6,40]}\noutput \"z\" %z") ==
        "domain [2, 3, 40] vector 2\n"
        "argument0 f32[240] read\n"
        "argument1 f32[3] read\n"
        "argument2 f32[240] written\n"
        "e0 = f32 load argument0[120*a0 + 40*a1 + a2]\n"
        "e1 = f32 neg f32 e0\n"
        "e2 = f32 load argument1[a1]\n"
        "e3 = f32 mul f32 e1 f32 e2\n"
        "argument2[120*a0 + 40*a1 + a2] = e3\n");
}

TEST_CASE("nodes that fit into no nest are refused") {
  CHECK(nest_text("feed %x: f32[4,6]\n%a = exp(%x)\n%r = reshape(%a) {shape=[3,8]}\n%b = neg(%r)\n"
                  "%q = transpose(%b) {perm=[1,0]}\noutput \"q\" %q") == "refused\n");
  CHECK(nest_text("feed %x: f32[4,6]\n%a = reduce_sum(%x) {axes=[0]}\n"
                  "%b = reduce_sum(%x) {axes=[1]}\noutput \"a\" %a\noutput \"b\" %b") ==
        "refused\n");
  CHECK(nest_text("feed %x: f32[4,6]\n%a = reduce_sum(%x) {axes=[1]}\n"
                  "%b = reduce_sum(%a) {axes=[0]}\noutput \"b\" %b") == "refused\n");
  CHECK(nest_text("feed %x: f32[4]\nfeed %y: f32[5]\n%a = neg(%x)\n%b = neg(%y)\n"
                  "output \"a\" %a\noutput \"b\" %b") == "refused\n");
}

TEST_CASE("blocks are ranges of rows by ranges of columns, and depend on shapes alone") {
  Graph graph =
      parse_graph("feed %x: f32[1000,512]\n%s = reduce_sum(%x) {axes=[0]}\noutput \"s\" %s");
  BlockGrid grid = block_grid(*nest_of(graph));
  CHECK(grid.columns_per_block == 64);
  CHECK(grid.blocks() == 8);  // 512 / 64
  Graph rows =
      parse_graph("feed %x: f32[1000,512]\n%s = reduce_sum(%x) {axes=[1]}\noutput \"s\" %s");
  grid = block_grid(*nest_of(rows));
  CHECK(grid.rows_per_block == 32);  // 16384 / 512
  CHECK(grid.blocks() == 32);        // ceil(1000 / 32)
}

TEST_CASE("scores are overwritten by a kernel that reads the label's before its sweeps") {
  const auto overwrites = [](const std::string& nodes) {
    const Graph graph = parse_graph("feed %x: f32[8,50]\nfeed %l: i64[8,1]\nfeed %c: i64[1,50]\n" +
                                    nodes + "output \"y\" %y");
    const LoopNest nest = *nest_of(graph);
    const auto x = std::find_if(nest.arguments.begin(), nest.arguments.end(),
                                [](const NestArgument& each) { return each.value == 0; });
    return may_share_bytes(nest, static_cast<int32_t>(x - nest.arguments.begin()), nest.stores[0]);
  };
  const std::string sum = "%s = reduce_sum(%x) {axes=[1]}\n%m = sub(%x, %s)\n";
  const std::string label = "%p = pick(%x, %l) {axis=1}\n";
  CHECK(overwrites(sum + "%y = neg(%m)\n"));
  CHECK(overwrites(sum + label + "%y = mul(%m, %p)\n"));
  // Without a sum no sweep comes before the stores.
  CHECK_FALSE(overwrites(label + "%y = mul(%x, %p)\n"));
  // A score of another row, which may be written by then.
  CHECK_FALSE(overwrites(sum + "%p = pick(%x, %c) {axis=0}\n%y = mul(%m, %p)\n"));
}
