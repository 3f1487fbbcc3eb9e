// The walk from outputs to inputs. When a reshape needs a loop coordinate divided into two digits,
// the attempt stops, the atom is split, and the walk starts anew with the finer domain: maps that
// are already on the way never have to be rewritten.
#include "passes/build_loop_nest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "passes/nest_body.h"
#include "passes/nest_domain.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

struct DomainAtom {
  Atom atom;
  size_t dimension = 0;  // of the domain
};

std::vector<DomainAtom> first_atoms(const NestDomain& domain) {
  std::vector<DomainAtom> atoms;
  for (size_t d = 0; d < domain.dimensions.size(); ++d) {
    if (domain.dimensions[d] != 1) {
      atoms.push_back({{domain.dimensions[d], domain.reduced[d]}, d});
    }
  }
  return atoms;
}

void split_atom(std::vector<DomainAtom>& atoms, AtomSplit split) {
  DomainAtom inner = atoms[split.atom];
  inner.atom.extent = split.inner;
  atoms[split.atom].atom.extent /= split.inner;
  atoms.insert(atoms.begin() + static_cast<int64_t>(split.atom) + 1, inner);
}

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

// One walk with fixed atoms. Functions that return an expression return kNone when the nodes do
// not fit, or when `split` asks for another attempt.
class NestWalk {
 public:
  NestWalk(const Graph& graph, const NestRequest& request, const NestDomain& domain,
           const std::vector<DomainAtom>& atoms)
      : graph_(graph), request_(request), domain_(domain), body_(graph) {
    for (const DomainAtom& atom : atoms) atoms_.push_back(atom.atom);
    nodes_.insert(request.nodes.begin(), request.nodes.end());
  }

  bool run() {
    if (request_.given != kNone && !follow_given()) return false;
    for (size_t i = request_.outputs.size(); i-- > 0;) {
      if (!store(request_.outputs[i])) return false;
    }
    std::reverse(stores_.begin(), stores_.end());
    return true;
  }

  LoopNest take() {
    LoopNest nest;
    nest.atoms = atoms_;
    nest.order = domain_.order;
    nest.stores = std::move(stores_);
    body_.move_to(nest);
    return nest;
  }

  std::optional<AtomSplit> split;

 private:
  using Guards = std::vector<Guard>;

  struct Visited {
    ElementMap map;
    Guards guards;
    ExpressionId expression;
  };

  // Outputs.
  bool store(ValueId output);
  int32_t written_argument(ValueId output);
  bool find_storable(ValueId value, AffineIndex* index, ExpressionId* expression);
  std::optional<ElementMap> requested_map(ValueId value);
  std::optional<ElementMap> digits_of(const AffineIndex& index, const Shape& shape);
  bool follow_given();
  std::optional<ElementMap> followed_map(const Node& node);

  // Values.
  ExpressionId value(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId compute(const Node& node, ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId outside(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId elementwise(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId movement(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId reshape(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId pad(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId concat(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId iota(const Node& node, const ElementMap& map);
  ExpressionId indexing(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId reduce(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId random(const Node& node, const ElementMap& map);

  // Helpers.
  ExpressionId broadcast_value(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId select(const Guards& conditions, ExpressionId yes, ExpressionId no, DType dtype);
  AffineIndex checked_index(ValueId indices, const ElementMap& map, const Guards& guards,
                            int64_t extent);
  AffineIndex zero() const { return AffineIndex(atoms_.size()); }
  AffineIndex identity() const;                 // row-major over all atoms
  AffineIndex linear_over(bool reduced) const;  // over the reduced ones or the others
  int64_t parallel_extent() const;
  bool always(const Guard& guard) const;
  bool is_inside(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.kind == ValueKind::kResult && nodes_.count(value.producer) != 0;
  }
  bool uses_reduced(const AffineIndex& index) const;

  const Graph& graph_;
  const NestRequest& request_;
  const NestDomain& domain_;
  NestBody body_;
  std::vector<Atom> atoms_;
  std::set<NodeId> nodes_;
  std::vector<Store> stores_;
  std::map<ValueId, std::vector<Visited>> visited_;
  std::map<ValueId, ElementMap> followed_;  // epilogues: where the anchor's element goes
};

// ---- Outputs

bool NestWalk::store(ValueId output) {
  ValueId source = stored_value(graph_, output);
  AffineIndex index;
  ExpressionId expression = kNone;
  if (!find_storable(source, &index, &expression)) {
    std::optional<ElementMap> map = requested_map(source);
    if (!map) return false;
    expression = value(source, *map, {});
    if (expression == kNone) return false;
    index = linear_index(*map, graph_.shape(source), atoms_.size());
  }
  Store store;
  store.argument = written_argument(output);
  store.value = expression;
  store.index = index;
  if (source != output) {
    store.micro_batches = graph_.producer(output)->attributes.integer("micro_batches");
    store.micro_batch_stride = element_count(graph_.shape(source));
  }
  stores_.push_back(store);
  return true;
}

// An accumulator is written where it was read.
int32_t NestWalk::written_argument(ValueId output) {
  ValueId memory = output;
  while (is_inside(memory) && graph_.producer(memory)->op == Op::kAccumulate) {
    memory = graph_.producer(memory)->operands[0];
  }
  return body_.written_argument(memory);
}

// A place where the walk has computed the value already and meets each element once.
bool NestWalk::find_storable(ValueId value, AffineIndex* index, ExpressionId* expression) {
  int64_t count = element_count(graph_.shape(value));
  std::vector<bool> all(atoms_.size(), true);
  std::vector<bool> parallel;
  for (const Atom& atom : atoms_) parallel.push_back(!atom.reduced);
  for (const Visited& visited : visited_[value]) {
    if (!visited.guards.empty()) continue;
    AffineIndex linear = linear_index(visited.map, graph_.shape(value), atoms_.size());
    if (!is_bijective(linear, count, atoms_, all) &&
        !is_bijective(linear, count, atoms_, parallel)) {
      continue;
    }
    *index = linear;
    *expression = visited.expression;
    return true;
  }
  return false;
}

// Where an output is computed: in an epilogue, where the anchor's element goes; else in row-major
// order, with one element per iteration or one per row.
std::optional<ElementMap> NestWalk::requested_map(ValueId value) {
  auto followed = followed_.find(value);
  if (followed != followed_.end()) return followed->second;
  const Shape& shape = graph_.shape(value);
  int64_t count = element_count(shape);
  if (count == element_count(domain_.dimensions)) return digits_of(identity(), shape);
  if (count == parallel_extent()) return digits_of(linear_over(false), shape);
  return std::nullopt;
}

std::optional<ElementMap> NestWalk::digits_of(const AffineIndex& index, const Shape& shape) {
  Delinearized digits = delinearize(index, shape, atoms_);
  if (digits.outcome == Delinearized::Outcome::kSplit && !split) split = digits.split;
  if (digits.outcome != Delinearized::Outcome::kDone) return std::nullopt;
  return digits.map;
}

// Follows the anchor's result through transposes and reshapes, so that a permuted output is stored
// from the anchor's order. False when an atom must be split first.
bool NestWalk::follow_given() {
  std::optional<ElementMap> start = digits_of(identity(), graph_.shape(request_.given));
  if (!start) return false;
  followed_[request_.given] = *start;
  for (NodeId id : request_.nodes) {
    std::optional<ElementMap> map = followed_map(graph_.node(id));
    if (split) return false;
    if (map) followed_[graph_.node(id).results[0]] = *map;
  }
  return true;
}

std::optional<ElementMap> NestWalk::followed_map(const Node& node) {
  const Shape& shape = graph_.shape(node.results[0]);
  for (ValueId operand : node.operands) {
    auto at = followed_.find(operand);
    if (at == followed_.end()) continue;
    const ElementMap& map = at->second;
    if (node.op == Op::kReshape) {
      return digits_of(linear_index(map, graph_.shape(operand), atoms_.size()), shape);
    }
    if (node.op == Op::kTranspose) {
      ElementMap moved;
      for (int64_t d : node.attributes.integers("perm")) {
        moved.push_back(map[static_cast<size_t>(d)]);
      }
      return moved;
    }
    OpKind kind = info(node.op).kind;
    bool keeps_place = kind == OpKind::kElementwise || node.op == Op::kAccumulate;
    if (keeps_place && graph_.shape(operand) == shape) return map;
  }
  return std::nullopt;
}

AffineIndex NestWalk::identity() const {
  AffineIndex index = zero();
  int64_t stride = 1;
  for (size_t i = atoms_.size(); i-- > 0;) {
    index.coefficients[i] = stride;
    stride *= atoms_[i].extent;
  }
  return index;
}

AffineIndex NestWalk::linear_over(bool reduced) const {
  AffineIndex index = zero();
  int64_t stride = 1;
  for (size_t i = atoms_.size(); i-- > 0;) {
    if (atoms_[i].reduced != reduced) continue;
    index.coefficients[i] = stride;
    stride *= atoms_[i].extent;
  }
  return index;
}

int64_t NestWalk::parallel_extent() const {
  int64_t extent = 1;
  for (const Atom& atom : atoms_) extent *= atom.reduced ? 1 : atom.extent;
  return extent;
}

// ---- Values

ExpressionId NestWalk::value(ValueId id, const ElementMap& map, const Guards& guards) {
  for (const Visited& visited : visited_[id]) {
    if (visited.map == map && visited.guards == guards) return visited.expression;
  }
  if (body_.size() > kMaxExpressions) return kNone;
  ExpressionId expression =
      is_inside(id) ? compute(*graph_.producer(id), id, map, guards) : outside(id, map, guards);
  if (expression != kNone) visited_[id].push_back({map, guards, expression});
  return expression;
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
    case OpKind::kElementwise: return elementwise(node, map, guards);
    case OpKind::kMovement: return movement(node, map, guards);
    case OpKind::kIndexing: return indexing(node, map, guards);
    case OpKind::kReduction: return reduce(node, map, guards);
    case OpKind::kRandom: return random(node, map);
    default: break;
  }
  return node.op == Op::kAccumulate ? elementwise(node, map, guards) : kNone;
}

ExpressionId NestWalk::broadcast_value(ValueId id, const ElementMap& map, const Guards& guards) {
  const Shape& shape = graph_.shape(id);
  ElementMap inner;
  size_t skipped = map.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    inner.push_back(shape[d] == 1 ? zero() : map[skipped + d]);
  }
  return value(id, inner, guards);
}

ExpressionId NestWalk::elementwise(const Node& node, const ElementMap& map, const Guards& guards) {
  std::vector<ExpressionId> operands;
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
  if (node.op == Op::kIsInf) {
    expression.integer = (node.attributes.integer_or("positive", 1) != 0 ? 1 : 0) |
                         (node.attributes.integer_or("negative", 1) != 0 ? 2 : 0);
  }
  return body_.add(std::move(expression));
}

ExpressionId NestWalk::movement(const Node& node, const ElementMap& map, const Guards& guards) {
  switch (node.op) {
    case Op::kReshape: return reshape(node, map, guards);
    case Op::kBroadcast: return broadcast_value(node.operands[0], map, guards);
    case Op::kPad: return pad(node, map, guards);
    case Op::kConcat: return concat(node, map, guards);
    case Op::kIota: return iota(node, map);
    default: break;
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
    result = result == kNone
                 ? part
                 : select(conditions, part, result, graph_.dtype(node.results[0]));
    end = begin;
  }
  return result;
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

AffineIndex NestWalk::checked_index(ValueId indices, const ElementMap& map, const Guards& guards,
                                    int64_t extent) {
  AffineIndex index = zero();
  ExpressionId raw = value(indices, map, guards);
  if (raw == kNone) return index;
  Expression checked;
  checked.kind = Expression::Kind::kChecked;
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
      computed.push_back(checked_index(node.operands[1], at, guards, extent));
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
    computed.push_back(checked_index(node.operands[1], at, guards, shape[axis]));
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
  bool same_order = order == domain_.order && lane_extent == domain_.lane_extent &&
                    element_count(reduced_shape) * parallel_extent() ==
                        element_count(domain_.dimensions);
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

// A nest without work, for outputs without elements.
LoopNest empty_nest(const Graph& graph, const NestRequest& request) {
  LoopNest nest;
  nest.atoms = {{0, false}};
  NestBody body(graph);
  for (ValueId output : request.outputs) {
    Store store;
    store.argument = body.written_argument(output);
    store.value = body.constant(graph.dtype(output), 0, 0);
    store.index = AffineIndex(1);
    store.index.coefficients[0] = 1;
    nest.stores.push_back(store);
  }
  body.move_to(nest);
  finish_nest(nest, false);
  return nest;
}

void set_sections(LoopNest& nest, const NestRequest& request,
                  const std::vector<DomainAtom>& atoms) {
  for (const DomainAtom& atom : atoms) {
    if (atom.dimension < request.batch_dimensions) ++nest.row_begin;
    if (atom.dimension < request.batch_dimensions + request.row_dimensions) ++nest.vector_begin;
  }
}

// Accumulators are read and written in place.
bool updates_in_place(const LoopNest& nest) {
  for (const Store& store : nest.stores) {
    if (nest.arguments[static_cast<size_t>(store.argument)].read &&
        !may_share_bytes(nest, store.argument, store)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_loop_op(Op op) {
  switch (info(op).kind) {
    case OpKind::kElementwise:
    case OpKind::kMovement:
    case OpKind::kRandom:
    case OpKind::kMicroBatch: return true;
    case OpKind::kIndexing:
      return op == Op::kGather || op == Op::kGatherElements || op == Op::kGatherNd ||
             op == Op::kPick;
    case OpKind::kReduction:
      return op == Op::kReduceSum || op == Op::kReduceMax || op == Op::kReduceMin ||
             op == Op::kReduceProd;
    default: return false;
  }
}

bool may_share_bytes(const LoopNest& nest, int32_t read, const Store& store) {
  if (store.micro_batches > 0) return false;
  const Expression& stored = nest.expressions[static_cast<size_t>(store.value)];
  std::vector<std::vector<ExpressionId>> work = element_work(nest);
  for (size_t id = 0; id < nest.expressions.size(); ++id) {
    const Expression& load = nest.expressions[id];
    if (load.kind != Expression::Kind::kLoad || load.argument != read) continue;
    bool same_place = load.index == store.index && load.guards.empty();
    if (!same_place || load.depth != 0 || load.level != stored.level) return false;
    for (int32_t sweep = sweep_of(nest, store) + 1; sweep < nest.sweeps; ++sweep) {
      const std::vector<ExpressionId>& list = work[static_cast<size_t>(sweep)];
      if (std::find(list.begin(), list.end(), static_cast<ExpressionId>(id)) != list.end()) {
        return false;
      }
    }
  }
  return true;
}

std::optional<LoopNest> build_loop_nest(const Graph& graph, const NestRequest& request) {
  bool has_elements = std::any_of(request.outputs.begin(), request.outputs.end(), [&](ValueId id) {
    return element_count(graph.shape(id)) != 0;
  });
  if (!has_elements) return empty_nest(graph, request);
  NestDomain domain = choose_domain(graph, request);
  std::vector<DomainAtom> atoms = first_atoms(domain);
  while (true) {
    NestWalk walk(graph, request, domain, atoms);
    if (walk.run()) {
      LoopNest nest = walk.take();
      bool is_epilogue = request.given != kNone;
      if (is_epilogue) set_sections(nest, request, atoms);
      finish_nest(nest, is_epilogue);
      if (!updates_in_place(nest)) return std::nullopt;
      return nest;
    }
    if (!walk.split) return std::nullopt;
    split_atom(atoms, *walk.split);
  }
}

}  // namespace sgtc
