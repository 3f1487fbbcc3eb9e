#include "ir/clone.h"

#include <utility>

#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

const std::string kText =
    "feed %x: f32[2]\nconstant %c: f32[] = [2]\n%a = neg(%x)\n%b = exp(%a)\n%d = mul(%b, %c)\n"
    "output \"y\" %d";

// Replaces `wanted` by the sine of its operand.
Graph with_sine(Op wanted, Cloner& cloner) {
  for (const Node& node : cloner.source().nodes) {
    if (node.op != wanted) {
      cloner.clone(node);
      continue;
    }
    cloner.inherit(node);
    const std::string& name = cloner.source().value(node.results[0]).name;
    cloner.replace(node.results[0],
                   cloner.target().add(Op::kSin, {cloner[node.operands[0]]}, {}, name));
  }
  return cloner.finish();
}

}  // namespace

TEST_CASE("a graph that is given away and cloned as it is comes back without a copy") {
  Graph graph = parse_graph(kText);
  const std::string text = to_text(graph);
  const Node* nodes = graph.nodes.data();
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) {
    cloner.clone(node);
    CHECK(cloner[node.results[0]] == node.results[0]);
    CHECK(cloner.made().type(cloner[node.results[0]]) == cloner.source().type(node.results[0]));
  }
  const Graph result = cloner.finish();
  CHECK(result.nodes.data() == nodes);
  CHECK(to_text(result) == text);
}

TEST_CASE("a graph that is lent is copied") {
  const Graph graph = parse_graph(kText);
  Cloner cloner(graph);
  for (const Node& node : graph.nodes) cloner.clone(node);
  CHECK(to_text(cloner.finish()) == to_text(graph));
  CHECK(graph.nodes.size() == 3);
}

TEST_CASE("a change of the first, a middle or the last node gives the same graph either way") {
  for (const Op op : {Op::kNeg, Op::kExp, Op::kMul}) {
    const Graph source = parse_graph(kText);
    Cloner lent(source), given(parse_graph(kText));
    const Graph graph = with_sine(op, given);
    verify(graph, "with_sine");
    CHECK(to_text(graph) == to_text(with_sine(op, lent)));
    CHECK(to_text(graph).find("sin(") != std::string::npos);
  }
}

TEST_CASE("a node that is left out is not in what comes back") {
  Graph graph = parse_graph("feed %x: f32[2]\n%a = neg(%x)\n%b = exp(%x)\noutput \"y\" %b");
  for (const bool is_last : {false, true}) {
    if (is_last)
      graph = parse_graph("feed %x: f32[2]\n%b = exp(%x)\n%a = neg(%x)\noutput \"y\" %b");
    Cloner cloner(std::move(graph));
    for (const Node& node : cloner.source().nodes) {
      if (node.op == Op::kExp) cloner.clone(node);
    }
    const Graph result = cloner.finish();
    verify(result, "left out");
    CHECK(result.nodes.size() == 1);
    CHECK(result.nodes[0].op == Op::kExp);
  }
}

TEST_CASE("leaves that are not kept are left out of a graph that is given away") {
  Graph graph = parse_graph(
      "feed %x: f32[2]\nconstant %c: f32[] = [2]\n%a = neg(%x)\n"
      "output \"y\" %a");
  std::vector<bool> keep(graph.values.size(), true);
  keep[static_cast<size_t>(graph.find("c"))] = false;
  Cloner cloner(std::move(graph), keep);
  for (const Node& node : cloner.source().nodes) cloner.clone(node);
  CHECK(cloner.finish().find("c") == kNone);
}

TEST_CASE("leaves that come after results are before them in what comes back") {
  Graph graph = parse_graph(kText);
  graph.outputs[0].value =
      graph.add(Op::kMul, {graph.find("d"), graph.add_scalar(DType::kFloat32, 3)});
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) cloner.clone(node);
  const Graph result = cloner.finish();
  verify(result, "reordered");
  CHECK(result.value(2).kind == ValueKind::kConstant);
  CHECK(result.value(3).name == "a");
}

TEST_CASE("a value whose node was not cloned yet is an internal error") {
  Graph graph = parse_graph(kText);
  Cloner cloner(std::move(graph));
  CHECK_THROWS_AS(cloner[cloner.source().find("a")], InternalError);
  cloner.clone(cloner.source().nodes[0]);
  CHECK(cloner[cloner.source().find("a")] == cloner.source().find("a"));
}
