#include "ir/graph.h"

#include <algorithm>
#include <array>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr std::array<std::string_view, 5> kPhaseNames = {"setup", "prologue", "forward", "backward",
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

void Sources::add(const Sources& more) {
  if (empty()) *this = more;
  for (const std::string& name : more) {
    if (std::find(begin(), end(), name) == end()) names_.own().push_back(name);
  }
}

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
  const std::string name = result_name;  // which a value of this graph may have, that moves
  return append(op, std::move(operands), std::move(attributes), {&name, 1}).results;
}

std::vector<ValueId> Graph::add_named_node(Op op, std::vector<ValueId> operands,
                                           Attributes attributes,
                                           const std::vector<std::string>& names) {
  SGTC_CHECK(names.size() == static_cast<size_t>(info(op).results),
             "wrong number of result names for " + std::string(name_of(op)));
  return append(op, std::move(operands), std::move(attributes), names).results;
}

// With one name it is that of all results.
const Node& Graph::append(Op op, std::vector<ValueId> operands, Attributes attributes,
                          std::span<const std::string> names) {
  OperandTypes operand_types;
  for (const ValueId operand : operands) operand_types.push_back(&type(operand));
  std::vector<TensorType> types = infer_types(op, operand_types, attributes);
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
    const std::string& name = names[std::min(i, names.size() - 1)];
    node.results.push_back(
        add_result(name.empty() ? std::string(name_of(op)) : name, std::move(types[i])));
  }
  nodes.push_back(std::move(node));
  return nodes.back();
}

const Node& Graph::add_copy(const Graph& source, const Node& node, std::vector<ValueId> operands) {
  Node copy;
  copy.op = node.op;
  copy.operands = std::move(operands);
  copy.attributes = node.attributes;
  copy.phase = node.phase;
  copy.id = node.id;
  copy.sources = node.sources;
  reserve_ids(copy.id);
  copy.results.reserve(node.results.size());
  for (const ValueId result : node.results) {
    copy.results.push_back(add_result(source.value(result).name, source.type(result)));
  }
  nodes.push_back(std::move(copy));
  return nodes.back();
}

ValueId Graph::add(Op op, std::vector<ValueId> operands, Attributes attributes,
                   const std::string& result_name) {
  SGTC_CHECK(info(op).results == 1, std::string(name_of(op)) + " has several results");
  return append(op, std::move(operands), std::move(attributes), {&result_name, 1}).results[0];
}

const Node* Graph::producer(ValueId id) const {
  const NodeId node = value(id).producer;
  return node == kNone ? nullptr : &nodes[static_cast<size_t>(node)];
}

std::string Graph::unique_name(const std::string& wanted) {
  if (find(wanted) == kNone) return wanted;
  int64_t& suffix = next_suffix_[wanted];
  std::string name;
  do {
    name = wanted + '_' + std::to_string(++suffix);
  } while (find(name) != kNone);
  return name;
}

ValueId Graph::add_value(Value value) {
  if (find(value.name) != kNone) value.name = unique_name(value.name);
  values.push_back(std::move(value));
  names_.add_last(values);
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_result(const std::string& name, TensorType type) {
  Value result;
  result.name = name;
  result.type = std::move(type);
  result.producer = static_cast<NodeId>(nodes.size());
  return add_value(std::move(result));
}

std::vector<Users> users_of(const Graph& graph) {
  std::vector<Users> users(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId operand : graph.nodes[i].operands) {
      users[static_cast<size_t>(operand)].push_back(static_cast<NodeId>(i));
    }
  }
  return users;
}

std::vector<int64_t> count_uses(const Graph& graph) {
  std::vector<int64_t> uses(graph.values.size(), 0);
  const auto count = [&](ValueId id) { ++uses[static_cast<size_t>(id)]; };
  for (const Node& node : graph.nodes) {
    std::for_each(node.operands.begin(), node.operands.end(), count);
  }
  for (const Output& output : graph.outputs) count(output.value);
  for (const Update& update : graph.updates) count(update.value);
  return uses;
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
