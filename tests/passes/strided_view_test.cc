// Values as strided views of stored tensors.
#include "passes/strided_view.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

using Strides = std::vector<int64_t>;

std::vector<NodeId> all_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) nodes.push_back(id);
  return nodes;
}

// "base offset [strides]" of %y, or "none".
std::string text_of(const Graph& graph, const std::optional<StridedView>& view) {
  if (!view) return "none";
  return graph.value(view->base).name + " " + std::to_string(view->offset) + " " +
         to_string(view->strides);
}

std::string operand(const std::string& text) {
  const Graph graph = parse_graph(text + "\noutput \"y\" %y");
  return text_of(graph, operand_view(graph, graph.find("y"), all_nodes(graph)));
}

std::string result(const std::string& text) {
  const Graph graph = parse_graph("feed %r: f32[2,3,4,8]\nfeed %w: f32[2,4,72]\n" + text);
  return text_of(graph, result_view(graph, graph.find("r"), all_nodes(graph)));
}

}  // namespace

TEST_CASE("reshapes keep strides where dimensions lie in memory as one") {
  CHECK(reshaped_strides({2, 6}, {6, 1}, {2, 2, 3}) == Strides{6, 3, 1});
  CHECK(reshaped_strides({2, 6}, {100, 1}, {2, 2, 3}) == Strides{100, 3, 1});
  CHECK(reshaped_strides({2, 6}, {6, 1}, {12}) == Strides{1});
  CHECK(reshaped_strides({2, 3, 4}, {100, 4, 1}, {2, 12}) == Strides{100, 1});
  CHECK(reshaped_strides({4, 1}, {2, 7}, {4}) == Strides{2});
  CHECK(reshaped_strides({2, 3}, {0, 1}, {2, 1, 3}) == Strides{0, 3, 1});
  CHECK(reshaped_strides({1, 1}, {5, 5}, {}) == Strides{});
}

TEST_CASE("reshapes that would move elements have no strides") {
  CHECK_FALSE(reshaped_strides({2, 6}, {100, 1}, {12}));
  CHECK_FALSE(reshaped_strides({2, 3}, {1, 2}, {6}));
  CHECK_FALSE(reshaped_strides({2, 6}, {100, 1}, {3, 4}));
}

TEST_CASE("the heads of a packed projection are a view of it") {
  const std::string packed =
      "feed %x: f32[2,5,36]\n%s = slice(%x) {starts=[0,0,12], sizes=[2,5,12], steps=[1,1,1]}\n"
      "%h = reshape(%s) {shape=[2,5,3,4]}\n";
  CHECK(operand(packed + "%y = transpose(%h) {perm=[0,2,1,3]}") == "x 12 [180,4,36,1]");
  CHECK(operand(packed + "%y = transpose(%h) {perm=[0,2,3,1]}") == "x 12 [180,4,1,36]");
}

TEST_CASE("slices step, broadcasts stand still") {
  CHECK(operand("feed %x: f32[4,6]\n%y = slice(%x) {starts=[3,1], sizes=[2,2], steps=[-2,2]}") ==
        "x 19 [-12,2]");
  CHECK(operand("feed %x: f32[3,1]\n%y = broadcast(%x) {shape=[2,3,5]}") == "x 0 [0,1,0]");
}

TEST_CASE("what moves elements or computes them is no view") {
  CHECK(operand("feed %x: f32[2,3]\n%t = transpose(%x) {perm=[1,0]}\n"
                "%y = reshape(%t) {shape=[6]}") == "none");
  CHECK(operand("feed %x: f32[2,3]\n%y = neg(%x)") == "none");
  CHECK(operand("feed %x: f32[2,3]\nfeed %z: f32[2,3]\n%y = concat(%x, %z) {axis=0}") == "none");
}

TEST_CASE("a result is stored as transposes and reshapes leave it") {
  const std::string merged =
      "%t = transpose(%r) {perm=[0,2,1,3]}\n%m = reshape(%t) {shape=[2,4,24]}\n";
  CHECK(result(merged + "output \"m\" %m") == "m 0 [96,8,24,1]");
  CHECK(result("output \"r\" %r") == "r 0 [96,32,8,1]");
}

TEST_CASE("a placed result is stored in the whole") {
  const std::string merged =
      "%t = transpose(%r) {perm=[0,2,1,3]}\n%m = reshape(%t) {shape=[2,4,24]}\n";
  const std::string places = "{shape=[2,4,72], starts=[0,0,24]}\noutput \"p\" %p";
  CHECK(result(merged + "%p = place(%m) " + places) == "p 24 [288,8,72,1]");
  CHECK(result(merged + "%p = place(%m, %w) " + places) == "w 24 [288,8,72,1]");
  // Another part goes into the same memory.
  CHECK(result(merged + "%p = place(%m, %w) {shape=[2,4,72], starts=[0,0,24]}\n"
                        "feed %n: f32[2,4,24]\n%q = place(%n, %p) {shape=[2,4,72], "
                        "starts=[0,0,48]}\noutput \"q\" %q") == "w 24 [288,8,72,1]");
}

TEST_CASE("a result with several uses has no place of its own") {
  CHECK(result("%a = reshape(%r) {shape=[192]}\n%b = transpose(%r) {perm=[1,0,2,3]}\n"
               "output \"a\" %a\noutput \"b\" %b") == "none");
  CHECK(result("%a = neg(%r)\noutput \"a\" %a") == "none");
}
