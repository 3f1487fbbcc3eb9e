#include "passes/sink_widenings.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

std::string sunk(const std::string& text) {
  const Graph graph = sink_widenings(parse_graph(text));
  verify(graph, "sink_widenings");
  std::string operators;
  for (const Node& node : graph.nodes) {
    operators += std::string(name_of(node.op)) + ":" +
                 std::string(name_of(graph.dtype(node.results[0]))) + " ";
  }
  return operators;
}

const std::string kWide = "feed %x: bf16[2,6]\n%w = cast(%x) {to=\"f32\"}\n";

}  // namespace

TEST_CASE("movements of widened values move the narrow ones") {
  CHECK(sunk(kWide + "%r = reshape(%w) {shape=[12]}\n%y = neg(%r)\noutput \"y\" %y") ==
        "reshape:bf16 cast:f32 neg:f32 ");
  CHECK(sunk(kWide + "%s = slice(%w) {starts=[0,0], sizes=[2,2], steps=[1,1]}\n"
                     "%t = transpose(%s) {perm=[1,0]}\noutput \"y\" %t") ==
        "slice:bf16 transpose:bf16 cast:f32 ");
}

TEST_CASE("a value that is narrowed again was never wide") {
  CHECK(sunk(kWide + "%r = reshape(%w) {shape=[12]}\n%y = cast(%r) {to=\"bf16\"}\n"
                     "output \"y\" %y") == "reshape:bf16 ");
  CHECK(sunk(kWide + "%y = cast(%w) {to=\"f16\"}\noutput \"y\" %y") == "cast:f32 cast:f16 ");
}

TEST_CASE("parts are joined narrow where all are") {
  CHECK(sunk(kWide + "%y = concat(%w, %w) {axis=0}\noutput \"y\" %y") == "concat:bf16 cast:f32 ");
  CHECK(sunk(kWide + "feed %z: f32[1,6]\n%y = concat(%w, %z) {axis=0}\noutput \"y\" %y") ==
        "cast:f32 concat:f32 ");
}

TEST_CASE("narrowed values and integers stay where they are") {
  CHECK(sunk("feed %x: f32[2,6]\n%n = cast(%x) {to=\"bf16\"}\n%y = reshape(%n) {shape=[12]}\n"
             "output \"y\" %y") == "cast:bf16 reshape:bf16 ");
  CHECK(sunk("feed %x: i32[2,6]\n%n = cast(%x) {to=\"i64\"}\n%y = reshape(%n) {shape=[12]}\n"
             "output \"y\" %y") == "cast:i64 reshape:i64 ");
}
