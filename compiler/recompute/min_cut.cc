#include "recompute/min_cut.h"

#include <algorithm>

namespace sgtc {

MinCut::MinCut(int32_t vertices, int32_t source, int32_t sink)
    : source_(source), sink_(sink), leaving_(static_cast<size_t>(vertices)) {}

void MinCut::add_edge(int32_t from, int32_t to, int64_t capacity) {
  if (capacity == 0 || from == to) return;
  leaving_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({to, std::min(capacity, kInfinite)});
  leaving_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels() {
  level_.assign(leaving_.size(), -1);
  level_[static_cast<size_t>(source_)] = 0;
  std::vector<int32_t> queue = {source_};
  for (size_t at = 0; at < queue.size(); ++at) {
    const auto from = static_cast<size_t>(queue[at]);
    for (const int32_t number : leaving_[from]) {
      const Edge& edge = edges_[static_cast<size_t>(number)];
      if (edge.left == 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[from] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[static_cast<size_t>(sink_)] >= 0;
}

// Sends flow along one path of rising levels. Without recursion: paths have thousands of vertices.
bool MinCut::augment() {
  std::vector<int32_t> path;  // edges
  int32_t at = source_;
  while (at != sink_) {
    const auto from = static_cast<size_t>(at);
    if (next_[from] == leaving_[from].size()) {
      if (path.empty()) return false;
      const int32_t last = path.back();
      path.pop_back();
      at = edges_[static_cast<size_t>(last ^ 1)].to;
      ++next_[static_cast<size_t>(at)];
      continue;
    }
    const int32_t number = leaving_[from][next_[from]];
    const Edge& edge = edges_[static_cast<size_t>(number)];
    if (edge.left > 0 && level_[static_cast<size_t>(edge.to)] == level_[from] + 1) {
      path.push_back(number);
      at = edge.to;
    } else {
      ++next_[from];
    }
  }
  int64_t flow = kInfinite;
  for (const int32_t number : path) flow = std::min(flow, edges_[static_cast<size_t>(number)].left);
  for (const int32_t number : path) {
    edges_[static_cast<size_t>(number)].left -= flow;
    edges_[static_cast<size_t>(number ^ 1)].left += flow;
  }
  return true;
}

std::vector<bool> MinCut::source_side() {
  while (find_levels()) {
    next_.assign(leaving_.size(), 0);
    while (augment()) {
    }
  }
  std::vector<bool> side;
  for (const int32_t level : level_) side.push_back(level >= 0);
  return side;
}

}  // namespace sgtc
