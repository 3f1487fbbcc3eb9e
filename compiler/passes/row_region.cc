#include "passes/row_region.h"

#include <algorithm>

namespace sgtc {
namespace {

class RegionFinder {
 public:
  RegionFinder(const Graph& graph, NodeId product) : graph_(graph), product_(product) {}

  std::optional<RowRegion> run() {
    if (!start()) return {};
    users_ = users_of(graph_);
    forms_.resize(graph_.nodes.size());
    region_.contains.assign(graph_.nodes.size(), false);
    if (!add(product_) || !close() || !is_chained()) return {};
    if (!list_ends() || !find_followers()) return {};
    return std::move(region_);
  }

 private:
  bool contains(NodeId node) const { return region_.contains[static_cast<size_t>(node)]; }
  const Users& users(ValueId value) const { return users_[static_cast<size_t>(value)]; }

  bool start() {
    const Node& node = graph_.node(product_);
    if (node.op != Op::kMatMul || node.phase != Phase::kForward) return false;
    const Shape& shape = graph_.shape(node.results[0]);
    width_ = shape.back();
    region_.rows = width_ == 0 ? 0 : element_count(shape) / width_;
    return region_.rows > 1 && row_form(graph_, node, region_.rows);
  }

  int64_t width(ValueId value) const { return element_count(graph_.shape(value)) / region_.rows; }

  bool is_wide(ValueId value) const { return 2 * width(value) >= width_; }

  // Adds a node, of those results that are wide everything that reads them, and of operands what
  // computes them where that is wide or reads what is.
  bool add(NodeId first) {
    std::vector<NodeId> found = {first};
    while (!found.empty()) {
      const NodeId id = found.back();
      found.pop_back();
      if (contains(id)) continue;
      const Node& node = graph_.node(id);
      const auto form = row_form(graph_, node, region_.rows);
      if (!form || node.phase == Phase::kPrologue || node.phase == Phase::kUpdate) return false;
      region_.contains[static_cast<size_t>(id)] = true;
      forms_[static_cast<size_t>(id)] = *form;
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (form->by_rows[i] && is_of_wide(node.operands[i])) {
          found.push_back(graph_.value(node.operands[i]).producer);
        }
      }
      if (form->adds_up || !is_wide(node.results[0])) continue;
      const Users& readers = users(node.results[0]);
      found.insert(found.end(), readers.begin(), readers.end());
    }
    return true;
  }

  // Whether it is computed by rows and wide, or from wide rows.
  bool is_of_wide(ValueId value) const {
    const Node* producer = graph_.producer(value);
    if (producer == nullptr) return false;
    const auto form = row_form(graph_, *producer, region_.rows);
    if (!form || form->adds_up) return false;
    bool wide = is_wide(value);
    for (size_t i = 0; i < producer->operands.size(); ++i) {
      wide = wide || (form->by_rows[i] && is_wide(producer->operands[i]));
    }
    return wide;
  }

  // Adds what lies on a way from one of its nodes to another.
  bool close() {
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<bool> behind = reached_from(region_.contains);
      std::vector<bool> before = region_.contains;
      for (size_t i = graph_.nodes.size(); i-- > 0;) {
        if (!before[i]) continue;
        for (const ValueId operand : graph_.nodes[i].operands) {
          const NodeId producer = graph_.value(operand).producer;
          if (producer != kNone) before[static_cast<size_t>(producer)] = true;
        }
        const auto id = static_cast<NodeId>(i);
        if (contains(id) || !behind[i]) continue;
        if (!add(id)) return false;
        changed = true;
      }
    }
    return true;
  }

  // Per node: whether it is one of `nodes` or depends on one.
  std::vector<bool> reached_from(const std::vector<bool>& nodes) const {
    std::vector<bool> reached = nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId operand : graph_.nodes[i].operands) {
        const NodeId producer = graph_.value(operand).producer;
        if (producer != kNone && reached[static_cast<size_t>(producer)]) reached[i] = true;
      }
    }
    return reached;
  }

  // Whether its nodes read from each other what a part of the rows has computed.
  bool is_chained() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!region_.contains[i]) continue;
      const Node& node = graph_.nodes[i];
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const NodeId producer = graph_.value(node.operands[k]).producer;
        if (producer == kNone || !contains(producer)) continue;
        if (!forms_[i].by_rows[k] || forms_[static_cast<size_t>(producer)].adds_up) return false;
      }
      region_.phase = std::max(region_.phase, node.phase);
      region_.parts.push_back({static_cast<NodeId>(i), std::move(forms_[i])});
    }
    return true;
  }

  bool is_used_outside(ValueId value) const {
    const auto outside = [&](NodeId user) { return !contains(user); };
    const auto names = [&](const auto& use) { return use.value == value; };
    return std::any_of(users(value).begin(), users(value).end(), outside) ||
           std::any_of(graph_.outputs.begin(), graph_.outputs.end(), names) ||
           std::any_of(graph_.updates.begin(), graph_.updates.end(), names);
  }

  bool list_ends() {
    for (const RowRegion::Part& part : region_.parts) {
      const ValueId result = graph_.node(part.node).results[0];
      if (!is_used_outside(result)) continue;
      if (!part.form.adds_up && kNarrower * width(result) > width_) return false;
      region_.ends.push_back(result);
    }
    return true;
  }

  // What follows out of the forward phase may only be what makes a loss of the rows' results.
  bool find_followers() {
    region_.follows = reached_from(region_.contains);
    for (const RowRegion::Part& part : region_.parts) {
      region_.follows[static_cast<size_t>(part.node)] = false;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!region_.follows[i] || node.phase >= region_.phase) continue;
      const OpKind kind = info(node.op).kind;
      const bool is_simple = kind == OpKind::kElementwise || kind == OpKind::kMovement ||
                             kind == OpKind::kReduction || node.op == Op::kAccumulate;
      if (!is_simple || node.phase == Phase::kPrologue || width(node.results[0]) > 1) return false;
    }
    return true;
  }

  const Graph& graph_;
  const NodeId product_;
  std::vector<Users> users_;
  std::vector<RowForm> forms_;  // per node
  int64_t width_ = 0;           // elements of a row of the product's result
  RowRegion region_;
};

}  // namespace

std::optional<RowRegion> find_row_region(const Graph& graph, NodeId product) {
  return RegionFinder(graph, product).run();
}

}  // namespace sgtc
