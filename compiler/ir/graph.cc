#include "ir/graph.h"

#include <array>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr std::array<std::string_view, 4> kPhaseNames = {"prologue", "forward", "backward",
                                                         "update"};
constexpr std::array<std::string_view, 5> kRoleNames = {"parameter", "frozen", "statistic",
                                                        "moment", "accumulator"};

DType control_dtype(const std::string& name) {
  if (name == "learning_rate") return DType::kFloat32;
  SGTC_CHECK(name == "seed" || name == "step", "there is no control value called " + name);
  return DType::kInt64;
}

}  // namespace

std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

std::string_view name_of(StateRole role) { return kRoleNames[static_cast<size_t>(role)]; }

ValueId Graph::add_feed(const std::string& name, TensorType type) {
  Value value;
  value.name = name;
  value.type = std::move(type);
  value.kind = ValueKind::kFeed;
  const ValueId id = add_value(std::move(value));
  feeds.push_back(id);
  return id;
}

ValueId Graph::add_state(const std::string& name, TensorType type, StateRole role,
                         Initializer initial, Shape whole) {
  Value value;
  value.name = name;
  value.type = std::move(type);
  value.kind = ValueKind::kState;
  value.role = role;
  value.initial = std::move(initial);
  value.whole = std::move(whole);
  const ValueId id = add_value(std::move(value));
  states.push_back(id);
  return id;
}

ValueId Graph::add_constant(LiteralPtr literal, const std::string& name) {
  Value value;
  value.name = name;
  value.type = {literal->dtype(), literal->shape()};
  value.kind = ValueKind::kConstant;
  value.literal = std::move(literal);
  return add_value(std::move(value));
}

ValueId Graph::add_scalar(DType dtype, double value) {
  return add_constant(scalar_literal(dtype, value));
}

ValueId Graph::control(const std::string& name) {
  const ValueId existing = find(name);
  if (existing != kNone) {
    SGTC_CHECK(value(existing).kind == ValueKind::kControl,
               "the control value " + name + " has the name of another value");
    return existing;
  }
  Value control;
  control.name = name;
  control.type = {control_dtype(name), {}};
  control.kind = ValueKind::kControl;
  return add_value(std::move(control));
}

std::vector<ValueId> Graph::add_node(Op op, std::vector<ValueId> operands, Attributes attributes,
                                     const std::string& result_name) {
  const auto count = static_cast<size_t>(info(op).results);
  return add_named_node(op, std::move(operands), std::move(attributes),
                        std::vector<std::string>(count, result_name));
}

std::vector<ValueId> Graph::add_named_node(Op op, std::vector<ValueId> operands,
                                           Attributes attributes,
                                           const std::vector<std::string>& names) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const ValueId operand : operands) types.push_back(type(operand));
  types = infer_types(op, types, attributes);
  SGTC_CHECK(names.size() == types.size(),
             "wrong number of result names for " + std::string(name_of(op)));
  Node node;
  node.op = op;
  node.operands = std::move(operands);
  node.attributes = std::move(attributes);
  node.phase = context_.phase;
  node.id = context_.id != 0 ? context_.id : next_id();
  reserve_ids(node.id);
  node.sources = context_.sources;
  node.results.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    Value result;
    result.name = names[i].empty() ? std::string(name_of(op)) : names[i];
    result.type = std::move(types[i]);
    result.producer = static_cast<NodeId>(nodes.size());
    node.results.push_back(add_value(std::move(result)));
  }
  nodes.push_back(std::move(node));
  return nodes.back().results;
}

ValueId Graph::add(Op op, std::vector<ValueId> operands, Attributes attributes,
                   const std::string& result_name) {
  SGTC_CHECK(info(op).results == 1, std::string(name_of(op)) + " has several results");
  return add_node(op, std::move(operands), std::move(attributes), result_name)[0];
}

const Node* Graph::producer(ValueId id) const {
  const NodeId node = value(id).producer;
  return node == kNone ? nullptr : &nodes[static_cast<size_t>(node)];
}

ValueId Graph::find(const std::string& name) const {
  const auto entry = names_.find(name);
  return entry == names_.end() ? kNone : entry->second;
}

std::string Graph::unique_name(const std::string& wanted) {
  if (names_.count(wanted) == 0) return wanted;
  int64_t& suffix = next_suffix_[wanted];
  std::string name;
  do {
    name = wanted + '_' + std::to_string(++suffix);
  } while (names_.count(name) != 0);
  return name;
}

ValueId Graph::add_value(Value value) {
  const auto id = static_cast<ValueId>(values.size());
  if (!names_.try_emplace(value.name, id).second) {
    value.name = unique_name(value.name);
    names_.emplace(value.name, id);
  }
  values.push_back(std::move(value));
  return id;
}

std::vector<std::vector<NodeId>> users_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId operand : graph.nodes[i].operands) {
      users[static_cast<size_t>(operand)].push_back(static_cast<NodeId>(i));
    }
  }
  return users;
}

std::set<ValueId> states_behind(const Graph& graph, ValueId id) {
  std::vector<bool> reached(graph.values.size(), false);
  std::vector<ValueId> open{id};
  std::set<ValueId> states;
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (reached[static_cast<size_t>(next)] || !is_float(graph.dtype(next))) continue;
    reached[static_cast<size_t>(next)] = true;
    if (graph.value(next).kind == ValueKind::kState) states.insert(next);
    const Node* producer = graph.producer(next);
    if (producer) open.insert(open.end(), producer->operands.begin(), producer->operands.end());
  }
  return states;
}

}  // namespace sgtc
