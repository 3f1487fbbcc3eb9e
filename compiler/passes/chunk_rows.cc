#include "passes/chunk_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/clone.h"
#include "passes/fuse.h"
#include "passes/live_bytes.h"
#include "passes/row_region.h"
#include "passes/simplify.h"

namespace sgtc {
namespace {

constexpr int64_t kMostChunks = 4;
// What gives products of a chunk all of their speed.
constexpr int64_t kLeastRows = 256;
// Chunks but the last are a multiple of it, where there are so many rows: whole tiles of kernels.
constexpr int64_t kWholeTiles = 128;
// A step has to take so much less of its bytes.
constexpr double kLeastGain = 0.02;

struct Chunk {
  int64_t start = 0;
  int64_t rows = 0;
};

std::vector<Chunk> chunks_of(int64_t rows, int64_t count) {
  int64_t size = (rows + count - 1) / count;
  if (size > kWholeTiles) size = (size + kWholeTiles - 1) / kWholeTiles * kWholeTiles;
  std::vector<Chunk> chunks;
  for (int64_t start = 0; start < rows; start += size) {
    chunks.push_back({start, std::min(size, rows - start)});
  }
  return chunks;
}

class RegionSplitter {
 public:
  RegionSplitter(const Graph& source, const RowRegion& region, int64_t count)
      : source_(source),
        region_(region),
        chunks_(chunks_of(region.rows, count)),
        cloner_(source),
        e_(cloner_.target()),
        ends_(source.values.size()) {}

  // The region stands behind the last value from outside that it reads.
  Graph run() {
    NodeId last = region_.parts.front().node;
    for (const RowRegion::Part& part : region_.parts) {
      for (const ValueId operand : source_.node(part.node).operands) {
        const NodeId producer = source_.value(operand).producer;
        if (producer != kNone && !contains(producer)) last = std::max(last, producer);
      }
    }
    std::vector<NodeId> late;
    for (NodeId id = 0; id <= last; ++id) {
      if (region_.follows[static_cast<size_t>(id)]) late.push_back(id);
      if (!region_.follows[static_cast<size_t>(id)] && !contains(id)) clone(id);
    }
    for (const Chunk& chunk : chunks_) append(chunk);
    join_ends();
    for (const NodeId id : late) clone(id);
    for (auto id = last + 1; id < static_cast<NodeId>(source_.nodes.size()); ++id) {
      if (!contains(id)) clone(id);
    }
    return cloner_.finish();
  }

 private:
  bool contains(NodeId node) const { return region_.contains[static_cast<size_t>(node)]; }

  void clone(NodeId id) {
    cloner_.clone(source_.node(id));
    if (!region_.follows[static_cast<size_t>(id)]) return;
    Phase& phase = cloner_.target().nodes.back().phase;
    phase = std::max(phase, region_.phase);
  }

  void inherit(const Node& node, int64_t id) {
    cloner_.target().context() = {region_.phase, id, node.sources};
  }

  // The nodes of the region for some rows.
  void append(const Chunk& chunk) {
    std::map<ValueId, ValueId> values;  // of these rows
    for (const RowRegion::Part& part : region_.parts) {
      const Node& node = source_.node(part.node);
      inherit(node, node.id);
      std::vector<ValueId> operands;
      for (size_t i = 0; i < node.operands.size(); ++i) {
        const ValueId operand = node.operands[i];
        if (!part.form.by_rows[i]) {
          operands.push_back(cloner_[operand]);
          continue;
        }
        ValueId& rows = values.try_emplace(operand, kNone).first->second;
        if (rows == kNone) {
          rows = slice_rows(e_, cloner_[operand], region_.rows, chunk.start, chunk.rows);
        }
        operands.push_back(rows);
      }
      const ValueId result = node.results[0];
      values[result] =
          append_part(e_, source_, node, part.form, region_.rows, chunk.rows, std::move(operands));
      add_to_end(result, values[result], part.form.adds_up);
    }
  }

  void add_to_end(ValueId result, ValueId part, bool adds_up) {
    if (std::count(region_.ends.begin(), region_.ends.end(), result) == 0) return;
    std::vector<ValueId>& parts = ends_[static_cast<size_t>(result)];
    if (adds_up && !parts.empty()) {
      parts.back() = e_.add(parts.back(), part);
    } else {
      parts.push_back(part);
    }
  }

  void join_ends() {
    for (const ValueId end : region_.ends) {
      inherit(*source_.producer(end), 0);
      const std::vector<ValueId>& parts = ends_[static_cast<size_t>(end)];
      ValueId whole = parts.front();
      if (parts.size() > 1) whole = e_.apply(Op::kConcat, parts, {{"axis", int64_t{0}}});
      whole = e_.reshape(e_.cast(whole, source_.dtype(end)), source_.shape(end));
      cloner_.replace(end, whole);
    }
  }

  const Graph& source_;
  const RowRegion& region_;
  const std::vector<Chunk> chunks_;
  Cloner cloner_;
  Expressions e_;
  // Per value of the source that ends the region: its rows of each chunk, or the sum so far.
  std::vector<std::vector<ValueId>> ends_;
};

int64_t elements_of_result(const Graph& graph, NodeId node) {
  return element_count(graph.shape(graph.node(node).results[0]));
}

// The widest region of those whose product's node is not in `split`.
std::optional<RowRegion> widest_region(const Graph& graph, const std::set<int64_t>& split = {}) {
  std::vector<NodeId> products;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != Op::kMatMul || split.count(node.id) != 0) continue;
    const int64_t depth = graph.shape(node.operands[0]).back();
    const int64_t width = graph.shape(node.results[0]).back();
    if (width >= kNarrower * depth) products.push_back(static_cast<NodeId>(i));
  }
  std::stable_sort(products.begin(), products.end(), [&](NodeId a, NodeId b) {
    return elements_of_result(graph, a) > elements_of_result(graph, b);
  });
  for (const NodeId product : products) {
    if (auto region = find_row_region(graph, product)) return region;
  }
  return std::nullopt;
}

// Splits `region`, the widest one, and those that are left.
Graph split_regions(Graph graph, std::optional<RowRegion> region, int64_t count) {
  std::set<int64_t> split;
  for (; region; region = widest_region(graph, split)) {
    for (const RowRegion::Part& part : region->parts) split.insert(graph.node(part.node).id);
    graph = RegionSplitter(graph, *region, std::min(count, region->rows)).run();
  }
  return graph;
}

}  // namespace

Graph chunk_rows(Graph graph, int64_t count) {
  if (count == 1) return graph;
  std::optional<RowRegion> region = widest_region(graph);
  return split_regions(std::move(graph), std::move(region), count);
}

int64_t choose_row_chunks(const Graph& graph, const KernelTarget& target) {
  if (target.is_gpu()) return 1;
  const auto region = widest_region(graph);
  const int64_t count = region ? std::min(kMostChunks, region->rows / kLeastRows) : 1;
  if (count < 2) return 1;
  const auto peak = [&](const Graph& step) {
    return static_cast<double>(peak_of_results(step, fuse(step, {}, target)));
  };
  const double whole = peak(graph);
  const double saved = whole - peak(simplify(split_regions(graph, region, count)));
  const bool gains = saved >= kLeastGain * (whole + static_cast<double>(bytes_of_states(graph)));
  return gains ? count : 1;
}

}  // namespace sgtc
