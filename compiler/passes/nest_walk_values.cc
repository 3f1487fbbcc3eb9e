// What the walk finds: the expression of each operator, given the element that is wanted.
#include <algorithm>
#include <limits>

#include "passes/nest_walk.h"

namespace sgtc {
namespace {

// What a reduction of nothing gives.
ExpressionId identity_of(NestBody& body, Op op, DType dtype) {
  if (op == Op::kReduceSum) return body.constant(dtype, 0, 0);
  if (op == Op::kReduceProd) return body.constant(dtype, 1, 1);
  bool largest = op == Op::kReduceMin;
  int bits = static_cast<int>(size_of(dtype)) * 8;
  int64_t low = is_unsigned(dtype) || dtype == DType::kBool ? 0 : INT64_MIN >> (64 - bits);
  int64_t high = is_unsigned(dtype) && bits == 64 ? -1
                 : is_unsigned(dtype)             ? (int64_t{1} << bits) - 1
                 : dtype == DType::kBool          ? 1
                                                  : INT64_MAX >> (64 - bits);
  double infinity = std::numeric_limits<double>::infinity();
  return body.constant(dtype, largest ? infinity : -infinity, largest ? high : low);
}

}  // namespace

ExpressionId NestWalk::value(ValueId id, const ElementMap& map, const Guards& guards) {
  ExpressionId known = kNone;
  const bool is_known = any_visited(id, [&](const Visited& visited) {
    known = visited.expression;
    return maps_[visited.map] == map && visited.guards == guards;
  });
  if (is_known) return known;
  if (body_.size() > kMaxExpressions) return kNone;
  ExpressionId expression =
      is_inside(id) ? compute(*graph_.producer(id), id, map, guards) : outside(id, map, guards);
  if (expression == kNone) return kNone;
  const std::pair place(id, visited_.size());
  places_.insert(std::lower_bound(places_.begin(), places_.end(), place), place);
  visited_.push_back({kept(map), guards, expression});
  return expression;
}

size_t NestWalk::kept(const ElementMap& map) {
  const auto known = std::find(maps_.begin(), maps_.end(), map);
  if (known != maps_.end()) return static_cast<size_t>(known - maps_.begin());
  maps_.push_back(map);
  return maps_.size() - 1;
}

ExpressionId NestWalk::outside(ValueId id, const ElementMap& map, const Guards& guards) {
  const Value& value = graph_.value(id);
  int64_t count = element_count(value.type.shape);
  if (count == 0) return body_.constant(value.type.dtype, 0, 0);
  if (value.kind == ValueKind::kConstant && count == 1) {
    return body_.constant(value.type.dtype, value.literal->as_double(0),
                          is_float(value.type.dtype) ? 0 : value.literal->as_int(0));
  }
  AffineIndex index = linear_index(map, value.type.shape, atoms_.size());
  if (id != request_.given) return body_.load(id, std::move(index), guards);
  if (!(index == identity()) || !guards.empty()) return kNone;
  Expression given;
  given.kind = Expression::Kind::kGiven;
  given.dtype = value.type.dtype;
  return body_.add(std::move(given));
}

ExpressionId NestWalk::compute(const Node& node, ValueId id, const ElementMap& map,
                               const Guards& guards) {
  if (element_count(graph_.shape(id)) == 0) return body_.constant(graph_.dtype(id), 0, 0);
  switch (info(node.op).kind) {
    case OpKind::kElementwise:
      return elementwise(node, map, guards);
    case OpKind::kMovement:
      return movement(node, map, guards);
    case OpKind::kIndexing:
      return indexing(node, map, guards);
    case OpKind::kReduction:
      return reduce(node, map, guards);
    case OpKind::kRandom:
      return random(node, map);
    default:
      break;
  }
  return node.op == Op::kAccumulate ? elementwise(node, map, guards) : kNone;
}

ExpressionId NestWalk::broadcast_value(ValueId id, const ElementMap& map, const Guards& guards) {
  const Shape& shape = graph_.shape(id);
  size_t skipped = map.size() - shape.size();
  if (skipped == 0 && std::count(shape.begin(), shape.end(), 1) == 0) return value(id, map, guards);
  ElementMap inner;
  inner.reserve(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    inner.push_back(shape[d] == 1 ? zero() : map[skipped + d]);
  }
  return value(id, inner, guards);
}

ExpressionId NestWalk::elementwise(const Node& node, const ElementMap& map, const Guards& guards) {
  std::vector<ExpressionId> operands;
  operands.reserve(node.operands.size());
  for (ValueId operand : node.operands) {
    operands.push_back(broadcast_value(operand, map, guards));
    if (operands.back() == kNone) return kNone;
  }
  DType dtype = graph_.dtype(node.results[0]);
  if (node.op == Op::kCast && graph_.dtype(node.operands[0]) == dtype) return operands[0];
  Expression expression;
  expression.kind = Expression::Kind::kCompute;
  expression.op = node.op == Op::kAccumulate ? Op::kAdd : node.op;
  expression.dtype = dtype;
  expression.operands = std::move(operands);
  expression.integer = node.attributes.integer_or("approximate", 0);
  if (node.op == Op::kIsInf) {
    expression.integer = (node.attributes.integer_or("positive", 1) != 0 ? 1 : 0) |
                         (node.attributes.integer_or("negative", 1) != 0 ? 2 : 0);
  }
  return body_.add(std::move(expression));
}

ExpressionId NestWalk::movement(const Node& node, const ElementMap& map, const Guards& guards) {
  switch (node.op) {
    case Op::kReshape:
      return reshape(node, map, guards);
    case Op::kBroadcast:
      return broadcast_value(node.operands[0], map, guards);
    case Op::kPad:
      return pad(node, map, guards);
    case Op::kConcat:
      return concat(node, map, guards);
    case Op::kPlace:
      return place(node, map, guards);
    case Op::kIota:
      return iota(node, map);
    default:
      break;
  }
  ElementMap inner(map.size(), zero());
  if (node.op == Op::kTranspose) {
    const std::vector<int64_t>& perm = node.attributes.integers("perm");
    for (size_t d = 0; d < perm.size(); ++d) inner[static_cast<size_t>(perm[d])] = map[d];
  } else {
    const std::vector<int64_t>& starts = node.attributes.integers("starts");
    const std::vector<int64_t>& steps = node.attributes.integers("steps");
    for (size_t d = 0; d < map.size(); ++d) {
      inner[d].add(map[d], steps[d]);
      inner[d].constant += starts[d];
    }
  }
  return value(node.operands[0], inner, guards);
}

ExpressionId NestWalk::reshape(const Node& node, const ElementMap& map, const Guards& guards) {
  ValueId operand = node.operands[0];
  AffineIndex index = linear_index(map, graph_.shape(node.results[0]), atoms_.size());
  bool in_memory = !is_inside(operand) && operand != request_.given &&
                   graph_.value(operand).kind != ValueKind::kConstant;
  if (in_memory) return body_.load(operand, std::move(index), guards);
  std::optional<ElementMap> digits = digits_of(index, graph_.shape(operand));
  return digits ? value(operand, *digits, guards) : kNone;
}

ExpressionId NestWalk::pad(const Node& node, const ElementMap& map, const Guards& guards) {
  const std::vector<int64_t>& low = node.attributes.integers("low");
  const std::vector<int64_t>& high = node.attributes.integers("high");
  const Shape& shape = graph_.shape(node.operands[0]);
  ExpressionId fill = value(node.operands[1], {}, guards);
  if (fill == kNone || element_count(shape) == 0) return fill;
  ElementMap inner = map;
  Guards conditions;
  for (size_t d = 0; d < map.size(); ++d) {
    if (low[d] == 0 && high[d] == 0) continue;
    inner[d].constant -= low[d];
    Guard guard{inner[d], 0, shape[d]};
    if (!always(guard)) conditions.push_back(guard);
  }
  Guards inner_guards = guards;
  inner_guards.insert(inner_guards.end(), conditions.begin(), conditions.end());
  ExpressionId inside = value(node.operands[0], inner, inner_guards);
  return select(conditions, inside, fill, graph_.dtype(node.results[0]));
}

ExpressionId NestWalk::concat(const Node& node, const ElementMap& map, const Guards& guards) {
  size_t axis = static_cast<size_t>(node.attributes.integer("axis"));
  int64_t end = graph_.shape(node.results[0])[axis];
  ExpressionId result = kNone;
  for (size_t i = node.operands.size(); i-- > 0;) {
    const Shape& shape = graph_.shape(node.operands[i]);
    int64_t begin = end - shape[axis];
    if (element_count(shape) == 0) continue;
    Guard guard{map[axis], begin, end};
    Guards conditions;
    if (!always(guard)) conditions.push_back(guard);
    Guards inner_guards = guards;
    inner_guards.insert(inner_guards.end(), conditions.begin(), conditions.end());
    ElementMap inner = map;
    inner[axis].constant -= begin;
    ExpressionId part = value(node.operands[i], inner, inner_guards);
    if (part == kNone) return kNone;
    result =
        result == kNone ? part : select(conditions, part, result, graph_.dtype(node.results[0]));
    end = begin;
  }
  return result;
}

ExpressionId NestWalk::place(const Node& node, const ElementMap& map, const Guards& guards) {
  const std::vector<int64_t>& starts = node.attributes.integers("starts");
  const Shape& shape = graph_.shape(node.operands[0]);
  const DType dtype = graph_.dtype(node.results[0]);
  ElementMap inner = map;
  Guards conditions;
  for (size_t d = 0; d < map.size(); ++d) {
    inner[d].constant -= starts[d];
    Guard guard{inner[d], 0, shape[d]};
    if (!always(guard)) conditions.push_back(guard);
  }
  ExpressionId rest =
      node.operands.size() > 1 ? value(node.operands[1], map, guards) : body_.constant(dtype, 0, 0);
  if (element_count(shape) == 0) return rest;
  Guards inner_guards = guards;
  inner_guards.insert(inner_guards.end(), conditions.begin(), conditions.end());
  return select(conditions, value(node.operands[0], inner, inner_guards), rest, dtype);
}

ExpressionId NestWalk::select(const Guards& conditions, ExpressionId yes, ExpressionId no,
                              DType dtype) {
  if (yes == kNone || no == kNone) return kNone;
  if (conditions.empty()) return yes;
  Expression expression;
  expression.kind = Expression::Kind::kSelect;
  expression.dtype = dtype;
  expression.operands = {yes, no};
  expression.guards = conditions;
  return body_.add(std::move(expression));
}

ExpressionId NestWalk::iota(const Node& node, const ElementMap& map) {
  Expression expression;
  expression.kind = Expression::Kind::kIndex;
  expression.dtype = graph_.dtype(node.results[0]);
  expression.index = map[static_cast<size_t>(node.attributes.integer("axis"))];
  return body_.add(std::move(expression));
}

AffineIndex NestWalk::checked_index(Op op, ValueId indices, const ElementMap& map,
                                    const Guards& guards, int64_t extent) {
  AffineIndex index = zero();
  ExpressionId raw = value(indices, map, guards);
  if (raw == kNone) return index;
  Expression checked;
  checked.kind = Expression::Kind::kChecked;
  checked.op = op;
  checked.dtype = DType::kInt64;
  checked.operands = {raw};
  checked.guards = guards;
  checked.integer = extent;
  index.add_computed(body_.add(std::move(checked)), extent, 1);
  return index;
}

ExpressionId NestWalk::indexing(const Node& node, const ElementMap& map, const Guards& guards) {
  ValueId data = node.operands[0];
  const Shape& shape = graph_.shape(data);
  const Shape& index_shape = graph_.shape(node.operands[1]);
  ElementMap inner;
  auto append = [&](size_t begin, size_t end) {
    inner.insert(inner.end(), map.begin() + static_cast<int64_t>(begin),
                 map.begin() + static_cast<int64_t>(end));
  };
  std::vector<AffineIndex> computed;
  if (node.op == Op::kGatherNd) {
    size_t batch = static_cast<size_t>(node.attributes.integer_or("batch_dims", 0));
    size_t outer = index_shape.size() - 1;
    append(0, batch);
    for (int64_t k = 0; k < index_shape.back(); ++k) {
      ElementMap at(map.begin(), map.begin() + static_cast<int64_t>(outer));
      at.push_back(zero());
      at.back().constant = k;
      int64_t extent = shape[batch + static_cast<size_t>(k)];
      computed.push_back(checked_index(node.op, node.operands[1], at, guards, extent));
      inner.push_back(computed.back());
    }
    append(outer, map.size());
  } else {
    size_t axis = static_cast<size_t>(node.attributes.integer("axis"));
    size_t covered = node.op == Op::kGather ? index_shape.size() : 1;
    ElementMap at = map;
    if (node.op == Op::kGather) {
      at.assign(map.begin() + static_cast<int64_t>(axis),
                map.begin() + static_cast<int64_t>(axis + covered));
    }
    computed.push_back(checked_index(node.op, node.operands[1], at, guards, shape[axis]));
    append(0, axis);
    inner.push_back(computed.back());
    append(axis + covered, map.size());
  }
  for (const AffineIndex& index : computed) {
    if (index.computed.empty()) return kNone;
  }
  if (element_count(shape) != 0) return value(data, inner, guards);
  return body_.constant(graph_.dtype(data), 0, 0);
}

// ---- Reductions and random numbers

bool NestWalk::uses_reduced(const AffineIndex& index) const {
  if (!index.computed.empty()) return true;
  for (size_t i = 0; i < atoms_.size(); ++i) {
    if (atoms_[i].reduced && index.coefficients[i] != 0) return true;
  }
  return false;
}

ExpressionId NestWalk::reduce(const Node& node, const ElementMap& map, const Guards& guards) {
  const std::vector<int64_t>& axes = node.attributes.integers("axes");
  const Shape& shape = graph_.shape(node.operands[0]);
  if (element_count(shape) == 0) {
    return identity_of(body_, node.op, graph_.dtype(node.results[0]));
  }
  int64_t lane_extent = 1;
  ReductionOrder order = reduction_order(shape, axes, &lane_extent);
  if (order == ReductionOrder::kNone) return value(node.operands[0], map, guards);
  Shape reduced_shape;
  for (int64_t axis : axes) reduced_shape.push_back(shape[static_cast<size_t>(axis)]);
  bool same_order =
      order == domain_.order && lane_extent == domain_.lane_extent &&
      element_count(reduced_shape) * parallel_extent() == element_count(domain_.dimensions);
  bool row_level = guards.empty() && std::none_of(map.begin(), map.end(), [&](const auto& index) {
                     return uses_reduced(index);
                   });
  if (!same_order || !row_level) return kNone;
  std::optional<ElementMap> digits = digits_of(linear_over(true), reduced_shape);
  if (!digits) return kNone;
  ElementMap inner = map;
  for (size_t i = 0; i < axes.size(); ++i) inner[static_cast<size_t>(axes[i])] = (*digits)[i];
  Expression expression;
  expression.kind = Expression::Kind::kReduce;
  expression.op = node.op;
  expression.dtype = graph_.dtype(node.results[0]);
  expression.operands = {value(node.operands[0], inner, {})};
  return expression.operands[0] == kNone ? kNone : body_.add(std::move(expression));
}

ExpressionId NestWalk::random(const Node& node, const ElementMap& map) {
  Expression expression;
  expression.kind = Expression::Kind::kRandom;
  expression.op = node.op;
  expression.dtype = graph_.dtype(node.results[0]);
  expression.integer = node.attributes.integer("stream");
  expression.index = linear_index(map, graph_.shape(node.results[0]), atoms_.size());
  for (ValueId operand : node.operands) {
    expression.operands.push_back(
        value(operand, ElementMap(graph_.shape(operand).size(), zero()), {}));
    if (expression.operands.back() == kNone) return kNone;
  }
  return body_.add(std::move(expression));
}

bool NestWalk::always(const Guard& guard) const {
  if (!guard.index.computed.empty()) return false;
  int64_t low = guard.index.constant;
  int64_t high = guard.index.constant;
  for (size_t i = 0; i < atoms_.size(); ++i) {
    int64_t reach = guard.index.coefficients[i] * (atoms_[i].extent - 1);
    (reach < 0 ? low : high) += reach;
  }
  return guard.low <= low && high < guard.high;
}

}  // namespace sgtc
