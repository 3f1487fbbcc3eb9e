#include "ir/clone.h"

#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

bool is_kept(const std::vector<bool>& keep, ValueId id) {
  return keep.empty() || keep[static_cast<size_t>(id)];
}

ValueId copy_leaf(Graph& target, const Value& leaf) {
  switch (leaf.kind) {
    case ValueKind::kFeed:
      return target.add_feed(leaf.name, leaf.type);
    case ValueKind::kState:
      return target.add_state(leaf.name, leaf.type, leaf.role, leaf.initial, leaf.whole);
    case ValueKind::kConstant:
      return target.add_constant(leaf.literal, leaf.name);
    case ValueKind::kControl:
      return target.control(leaf.name);
    case ValueKind::kResult:
      break;
  }
  internal_error(__FILE__, __LINE__, leaf.name + " is not a leaf");
}

// Whether a copy of all nodes would have the same ids: leaves first, then results in their order.
bool has_order_of_copies(const Graph& graph, const std::vector<bool>& keep) {
  const auto count = static_cast<ValueId>(graph.values.size());
  ValueId next = 0;
  while (next < count && graph.value(next).kind != ValueKind::kResult) {
    if (!is_kept(keep, next++)) return false;
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId result : node.results) {
      if (result != next++) return false;
    }
  }
  return next == count;
}

}  // namespace

Cloner::Cloner(const Graph& source, const std::vector<bool>& keep) : source_(source) {
  copy_leaves(keep);
}

Cloner::Cloner(Graph&& source, const std::vector<bool>& keep)
    : owned_(std::move(source)), source_(owned_), unchanged_(has_order_of_copies(owned_, keep)) {
  if (!unchanged_) copy_leaves(keep);
}

void Cloner::copy_leaves(const std::vector<bool>& keep) {
  map_.assign(source_.values.size(), kNone);
  target_.name = source_.name;
  target_.micro_batch_rows = source_.micro_batch_rows;
  target_.micro_batches = source_.micro_batches;
  target_.replicas = source_.replicas;
  target_.reserve_ids(source_.last_id());
  target_.values.reserve(source_.values.size());
  target_.nodes.reserve(source_.nodes.size());
  for (ValueId id = 0; id < static_cast<ValueId>(source_.values.size()); ++id) {
    const Value& value = source_.value(id);
    if (value.kind == ValueKind::kResult || !is_kept(keep, id)) continue;
    map_[static_cast<size_t>(id)] = copy_leaf(target_, value);
  }
  target_.feeds.clear();
  for (const ValueId id : source_.feeds) target_.feeds.push_back((*this)[id]);
  target_.states.clear();
  for (const ValueId id : source_.states) {
    if (is_kept(keep, id)) target_.states.push_back((*this)[id]);
  }
}

Graph& Cloner::target() {
  if (!unchanged_) return target_;
  unchanged_ = false;
  copy_leaves({});
  for (size_t i = 0; i < cloned_; ++i) copy_node(source_.nodes[i]);
  return target_;
}

ValueId Cloner::operator[](ValueId old) const {
  if (unchanged_ && source_.value(old).producer < static_cast<NodeId>(cloned_)) return old;
  const ValueId id = unchanged_ ? kNone : map_[static_cast<size_t>(old)];
  SGTC_CHECK(id != kNone, source_.value(old).name + " was neither cloned nor replaced");
  return id;
}

void Cloner::clone(const Node& node) {
  if (unchanged_ && cloned_ < source_.nodes.size() && &node == &source_.nodes[cloned_]) {
    ++cloned_;
  } else {
    target();
    copy_node(node);
  }
}

void Cloner::copy_node(const Node& node) {
  std::vector<ValueId> operands;
  operands.reserve(node.operands.size());
  bool same_types = true;
  for (const ValueId operand : node.operands) {
    operands.push_back((*this)[operand]);
    same_types = same_types && target_.type(operands.back()) == source_.type(operand);
  }
  const Node& copy = same_types ? target_.add_copy(source_, node, std::move(operands))
                                : add_retyped(node, std::move(operands));
  for (size_t i = 0; i < node.results.size(); ++i) replace(node.results[i], copy.results[i]);
}

// A copy of which the results may have other types, like the operands.
const Node& Cloner::add_retyped(const Node& node, std::vector<ValueId> operands) {
  Graph::Context outer = std::exchange(target_.context(), {node.phase, node.id, node.sources});
  std::vector<std::string> names;
  names.reserve(node.results.size());
  for (const ValueId result : node.results) names.push_back(source_.value(result).name);
  target_.add_named_node(node.op, std::move(operands), node.attributes, names);
  target_.context() = std::move(outer);
  return target_.nodes.back();
}

void Cloner::replace(ValueId old, ValueId replacement) {
  if (unchanged_ && old == replacement) return;
  target();
  map_[static_cast<size_t>(old)] = replacement;
}

void Cloner::inherit(const Node& node) { target().context() = {node.phase, node.id, node.sources}; }

Graph Cloner::finish() {
  if (unchanged_ && cloned_ == source_.nodes.size()) {
    owned_.context() = {};
    return std::move(owned_);
  }
  target();
  for (const Output& output : source_.outputs) {
    target_.outputs.push_back({output.name, (*this)[output.value]});
  }
  for (const Update& update : source_.updates) {
    target_.updates.push_back({(*this)[update.state], (*this)[update.value]});
  }
  target_.context() = {};
  return std::move(target_);
}

}  // namespace sgtc
