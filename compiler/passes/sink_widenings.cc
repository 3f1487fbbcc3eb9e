#include "passes/sink_widenings.h"

#include <utility>

#include "ir/clone.h"
#include "passes/eliminate_dead_nodes.h"

namespace sgtc {
namespace {

bool moves_only(Op op) {
  return op == Op::kReshape || op == Op::kTranspose || op == Op::kBroadcast || op == Op::kSlice ||
         op == Op::kConcat;
}

class Sinker {
 public:
  explicit Sinker(Graph graph) : cloner_(std::move(graph)), graph_(cloner_.source()) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (!narrow_again(node) && !move_narrow(node)) cloner_.clone(node);
    }
    return eliminate_dead_nodes(cloner_.finish());
  }

 private:
  const Graph& made() const { return cloner_.made(); }
  Graph& target() { return cloner_.target(); }

  // What a cast of the target widens to this value; kNone for other values.
  ValueId narrow_source(ValueId id) {
    const Node* node = made().producer(id);
    if (node == nullptr || node->op != Op::kCast) return kNone;
    const ValueId source = node->operands[0];
    const DType from = made().dtype(source), to = made().dtype(id);
    const bool widens = is_float(from) && is_float(to) && size_of(from) < size_of(to);
    return widens ? source : kNone;
  }

  // A value that was widened and is cast back.
  bool narrow_again(const Node& node) {
    if (node.op != Op::kCast) return false;
    const ValueId source = narrow_source(cloner_[node.operands[0]]);
    if (source == kNone || made().dtype(source) != graph_.dtype(node.results[0])) return false;
    cloner_.replace(node.results[0], source);
    return true;
  }

  bool move_narrow(const Node& node) {
    if (!moves_only(node.op)) return false;
    std::vector<ValueId> sources;
    for (const ValueId operand : node.operands) {
      sources.push_back(narrow_source(cloner_[operand]));
      if (sources.back() == kNone || made().dtype(sources.back()) != made().dtype(sources[0])) {
        return false;
      }
    }
    cloner_.inherit(node);
    const ValueId moved = target().add(node.op, sources, node.attributes);
    const std::string type(name_of(graph_.dtype(node.results[0])));
    cloner_.replace(node.results[0], target().add(Op::kCast, {moved}, {{"to", type}},
                                                  graph_.value(node.results[0]).name));
    return true;
  }

  Cloner cloner_;
  const Graph& graph_;
};

}  // namespace

Graph sink_widenings(Graph graph) { return Sinker(std::move(graph)).run(); }

}  // namespace sgtc
