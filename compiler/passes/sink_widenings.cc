#include "passes/sink_widenings.h"

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
  explicit Sinker(const Graph& graph) : graph_(graph), cloner_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (!narrow_again(node) && !move_narrow(node)) cloner_.clone(node);
    }
    return eliminate_dead_nodes(cloner_.finish());
  }

 private:
  Graph& target() { return cloner_.target(); }

  // What a cast of the target widens to this value; kNone for other values.
  ValueId narrow_source(ValueId id) {
    const Node* node = target().producer(id);
    if (node == nullptr || node->op != Op::kCast) return kNone;
    const ValueId source = node->operands[0];
    const DType from = target().dtype(source), to = target().dtype(id);
    const bool widens = is_float(from) && is_float(to) && size_of(from) < size_of(to);
    return widens ? source : kNone;
  }

  // A value that was widened and is cast back.
  bool narrow_again(const Node& node) {
    if (node.op != Op::kCast) return false;
    const ValueId source = narrow_source(cloner_[node.operands[0]]);
    if (source == kNone || target().dtype(source) != graph_.dtype(node.results[0])) return false;
    cloner_.replace(node.results[0], source);
    return true;
  }

  bool move_narrow(const Node& node) {
    if (!moves_only(node.op)) return false;
    std::vector<ValueId> sources;
    for (const ValueId operand : node.operands) {
      sources.push_back(narrow_source(cloner_[operand]));
      if (sources.back() == kNone || target().dtype(sources.back()) != target().dtype(sources[0])) {
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

  const Graph& graph_;
  Cloner cloner_;
};

}  // namespace

Graph sink_widenings(const Graph& graph) { return Sinker(graph).run(); }

}  // namespace sgtc
