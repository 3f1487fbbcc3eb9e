// What the walk asks for: outputs, and the loop coordinates that stand for their elements.
#include "passes/nest_walk.h"

#include <algorithm>

namespace sgtc {

bool NestWalk::run() {
  const size_t usual = 2 * request_.nodes.size() + 2;  // results and what they are computed from
  body_.reserve(usual);
  visited_.reserve(usual);
  places_.reserve(usual);
  if (request_.given != kNone && !follow_given()) return false;
  for (size_t i = request_.outputs.size(); i-- > 0;) {
    if (!store(request_.outputs[i])) return false;
  }
  std::reverse(stores_.begin(), stores_.end());
  return true;
}

LoopNest NestWalk::take() {
  LoopNest nest;
  nest.atoms = atoms_;
  nest.order = domain_.order;
  nest.stores = std::move(stores_);
  body_.move_to(nest);
  return nest;
}

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
  store.index = std::move(index);
  if (source != output) {
    store.micro_batches = graph_.producer(output)->attributes.integer("micro_batches");
    store.micro_batch_stride = element_count(graph_.shape(source));
  }
  stores_.push_back(std::move(store));
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
  const Shape& shape = graph_.shape(value);
  const int64_t count = element_count(shape);
  return any_visited(value, [&](const Visited& visited) {
    if (!visited.guards.empty()) return false;
    AffineIndex linear = linear_index(maps_[visited.map], shape, atoms_.size());
    if (!is_bijective(linear, count, atoms_, Over::kAll) &&
        !is_bijective(linear, count, atoms_, Over::kParallel)) {
      return false;
    }
    *index = std::move(linear);
    *expression = visited.expression;
    return true;
  });
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
  return std::move(digits.map);
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

}  // namespace sgtc
