#include "recompute/min_cut.h"

#include <random>

#include "support/catch.h"

using namespace sgtc;

namespace {

struct Edge {
  int32_t from = 0;
  int32_t to = 0;
  int64_t capacity = 0;
};

int64_t cost_of(const std::vector<Edge>& edges, const std::vector<bool>& side) {
  int64_t cost = 0;
  for (const Edge& edge : edges) {
    if (side[static_cast<size_t>(edge.from)] && !side[static_cast<size_t>(edge.to)]) {
      cost += edge.capacity;
    }
  }
  return cost;
}

}  // namespace

TEST_CASE("the cheapest edge of a path is cut") {
  MinCut graph(4, 0, 1);
  graph.add_edge(0, 2, 5);
  graph.add_edge(2, 3, 3);
  graph.add_edge(3, 1, 4);
  CHECK(graph.source_side() == std::vector<bool>{true, false, true, false});
}

TEST_CASE("random cuts are as cheap as any") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    constexpr int32_t kVertices = 8;
    MinCut graph(kVertices, 0, 1);
    std::vector<Edge> edges;
    for (int e = 0; e < 20; ++e) {
      const Edge edge = {static_cast<int32_t>(random() % kVertices),
                         static_cast<int32_t>(random() % kVertices),
                         static_cast<int64_t>(random() % 20)};
      graph.add_edge(edge.from, edge.to, edge.capacity);
      edges.push_back(edge);
    }
    const std::vector<bool> found = graph.source_side();
    INFO("seed " << seed);
    REQUIRE(found[0]);
    REQUIRE(!found[1]);
    for (uint32_t bits = 0; bits < 1U << kVertices; ++bits) {
      std::vector<bool> side;
      for (int32_t v = 0; v < kVertices; ++v) side.push_back((bits >> v & 1) != 0);
      if (side[0] && !side[1]) REQUIRE(cost_of(edges, found) <= cost_of(edges, side));
    }
  }
}
