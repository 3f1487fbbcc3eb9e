#include "recompute/rerun_nodes.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

// Forward x -> a -> b -> reshape c, backward reads b and c.
const char* const kStep = R"(graph "g" rows 4 micro_batches 1
feed %x: f32[4,8]
%a = exp(%x)
%b = tanh(%a)
%c = reshape(%b) {shape=[8,4]}
%loss = reduce_sum(%c) {axes=[0,1]}
%d = neg(%b) @backward
%e = exp(%c) @backward
%f = add(%d, %d) @backward
output "loss" %loss
output "e" %e
output "f" %f
)";

std::vector<bool> choice_of(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<bool> again(graph.nodes.size(), false);
  for (const std::string& name : names) {
    again[static_cast<size_t>(graph.value(graph.find(name)).producer)] = true;
  }
  return again;
}

// "op phase" of all nodes in order.
std::string order_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += std::string(name_of(node.op)) + (node.phase == Phase::kBackward ? "' " : " ");
  }
  return text;
}

}  // namespace

TEST_CASE("without a choice nothing changes") {
  const Graph graph = parse_graph(kStep);
  CHECK(to_text(rerun_nodes(graph, choice_of(graph, {}))) == to_text(graph));
}

TEST_CASE("a copy runs directly before its first reader and serves all") {
  const Graph graph = parse_graph(kStep);
  const Graph again = rerun_nodes(graph, choice_of(graph, {"b"}));
  verify(again, "rerun_nodes");
  CHECK(order_of(again) == "exp tanh reshape reduce_sum tanh' neg' reshape' exp' add' ");
  const Node& copy = again.nodes[4];
  CHECK(copy.operands[0] == again.find("a"));
  CHECK(copy.id == again.nodes[1].id);
}

TEST_CASE("chains run again as a whole") {
  const Graph graph = parse_graph(kStep);
  const Graph again = rerun_nodes(graph, choice_of(graph, {"a", "b"}));
  verify(again, "rerun_nodes");
  CHECK(order_of(again) == "exp tanh reshape reduce_sum exp' tanh' neg' reshape' exp' add' ");
}

TEST_CASE("a copy that nobody needs is not made") {
  const Graph graph = parse_graph(kStep);
  CHECK(to_text(rerun_nodes(graph, choice_of(graph, {"a"}))) == to_text(graph));
}
