// Minimum cuts of small directed graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sgtc {

/// A directed graph with a source and a sink whose cheapest cut is sought.
class MinCut {
 public:
  /// An edge that no cut of finite cost crosses.
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  /// Vertices are 0 … `vertices` - 1.
  MinCut(int32_t vertices, int32_t source, int32_t sink);

  /// A cut with `from` on the source's side and `to` on the sink's costs `capacity` more, which is
  /// not negative.
  void add_edge(int32_t from, int32_t to, int64_t capacity);

  /// Per vertex whether it is on the source's side, of the cheapest cut with the smallest such side
  /// (Dinic's maximum flow, 1970). Call it once.
  std::vector<bool> source_side();

 private:
  struct Edge {
    int32_t to = 0;
    int64_t left = 0;  // capacity that no flow takes; the reverse edge is next to it
  };

  bool find_levels();
  bool augment();

  int32_t source_;
  int32_t sink_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int32_t>> leaving_;  // per vertex: numbers of edges
  std::vector<int32_t> level_;                 // distance from the source; -1: cannot be reached
  std::vector<size_t> next_;                   // per vertex: edges before it lead nowhere
};

}  // namespace sgtc
