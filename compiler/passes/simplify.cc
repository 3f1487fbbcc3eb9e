#include "passes/simplify.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/clone.h"

namespace sgtc {
namespace {

// A node about to be appended to the target, with the target's operands.
struct Candidate {
  Op op;
  std::vector<ValueId> operands;
  Attributes attributes;
  bool sole_user = false;  // of its first operand
};

class Simplifier {
 public:
  explicit Simplifier(Graph& graph) : graph_(graph) {}

  // A value equal to the candidate's result, or kNone when it must be appended as it is.
  // `candidate` may be changed to a simpler one in place.
  ValueId simplify(Candidate& candidate) {
    if (candidate.op == Op::kTranspose && candidate.sole_user) move_into_product(candidate);
    absorb_broadcasts(candidate);
    switch (candidate.op) {
      case Op::kMul:
        return without_neutral(candidate, 1, true);
      case Op::kDiv:
        return without_neutral(candidate, 1, false);
      case Op::kAdd:
        return without_neutral(candidate, -0.0, true);
      case Op::kSub:
        return without_neutral(candidate, 0, false);
      case Op::kPow:
        return simplify_pow(candidate);
      case Op::kNeg:
      case Op::kLogicalNot:
      case Op::kBitNot:
        return inner_of_same(candidate);
      case Op::kWhere:
        return simplify_where(candidate);
      case Op::kReshape:
        look_through(candidate, Op::kReshape);
        return if_same_type(candidate);
      case Op::kTranspose:
        return simplify_transpose(candidate);
      case Op::kBroadcast:
        look_through(candidate, Op::kBroadcast);
        return if_same_type(candidate);
      case Op::kCast:
      case Op::kPad:
        return if_same_type(candidate);
      case Op::kSlice:
        return if_whole_slice(candidate);
      case Op::kConcat:
        return candidate.operands.size() == 1 ? candidate.operands[0] : kNone;
      case Op::kReduceSum:
      case Op::kReduceMax:
      case Op::kReduceMin:
      case Op::kReduceProd:
        return without_unit_axes(candidate);
      case Op::kMatMul:
        absorb_transpose(candidate, 0, "transpose_a");
        absorb_transpose(candidate, 1, "transpose_b");
        return fold_batches(candidate);
      default:
        return kNone;
    }
  }

 private:
  TensorType result_type(const Candidate& candidate) const {
    std::vector<TensorType> types;
    for (const ValueId operand : candidate.operands) types.push_back(graph_.type(operand));
    return infer_types(candidate.op, types, candidate.attributes)[0];
  }

  // The first operand if its type is the result's.
  ValueId if_same_type(const Candidate& candidate) const {
    const ValueId operand = candidate.operands[0];
    return graph_.type(operand) == result_type(candidate) ? operand : kNone;
  }

  // The value that all elements of a constant have, seen through broadcasts.
  std::optional<double> uniform(ValueId id) const {
    while (const Node* producer = graph_.producer(id)) {
      if (producer->op != Op::kBroadcast && producer->op != Op::kReshape) return std::nullopt;
      id = producer->operands[0];
    }
    const Value& value = graph_.value(id);
    if (value.kind != ValueKind::kConstant || value.literal->bytes().empty()) return std::nullopt;
    const auto bytes = value.literal->bytes();
    const auto size = static_cast<size_t>(size_of(value.type.dtype));
    if (!std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                    bytes.begin())) {
      return std::nullopt;
    }
    return value.literal->as_double(0);
  }

  bool is_uniform(ValueId id, double wanted) const {
    const std::optional<double> value = uniform(id);
    if (!value || *value != wanted) return false;
    return !is_float(graph_.dtype(id)) || std::signbit(*value) == std::signbit(wanted);
  }

  ValueId without_neutral(const Candidate& candidate, double neutral, bool commutative) const {
    const TensorType type = result_type(candidate);
    const ValueId a = candidate.operands[0];
    const ValueId b = candidate.operands[1];
    if (is_uniform(b, neutral) && graph_.type(a) == type) return a;
    if (commutative && is_uniform(a, neutral) && graph_.type(b) == type) return b;
    return kNone;
  }

  ValueId simplify_pow(Candidate& candidate) {
    const ValueId base = candidate.operands[0];
    if (graph_.type(base) != result_type(candidate)) return kNone;
    const std::optional<double> exponent = uniform(candidate.operands[1]);
    const bool is_real = is_float(graph_.dtype(base));
    // A real power of an integer saturates, a product wraps.
    if (!exponent || (!is_real && is_float(graph_.dtype(candidate.operands[1])))) return kNone;
    if (*exponent == 1) return base;
    if (*exponent == 2) candidate = {Op::kMul, {base, base}, {}};
    if (*exponent == 0.5 && is_real) candidate = {Op::kSqrt, {base}, {}};
    return kNone;
  }

  // x for op(op(x)).
  ValueId inner_of_same(const Candidate& candidate) const {
    const Node* producer = graph_.producer(candidate.operands[0]);
    return producer != nullptr && producer->op == candidate.op ? producer->operands[0] : kNone;
  }

  ValueId simplify_where(Candidate& candidate) {
    const std::optional<double> condition = uniform(candidate.operands[0]);
    if (!condition) return kNone;
    const TensorType type = result_type(candidate);
    const ValueId taken = candidate.operands[*condition != 0 ? 1 : 2];
    if (graph_.type(taken) == type) return taken;
    candidate = {Op::kBroadcast, {taken}, {{"shape", type.shape}}};
    return kNone;
  }

  // Takes the operand of the operand when that is computed by `op`.
  void look_through(Candidate& candidate, Op op) const {
    const Node* producer = graph_.producer(candidate.operands[0]);
    if (producer != nullptr && producer->op == op) candidate.operands = producer->operands;
  }

  ValueId simplify_transpose(Candidate& candidate) {
    std::vector<int64_t> perm = candidate.attributes.integers("perm");
    const Node* producer = graph_.producer(candidate.operands[0]);
    if (producer != nullptr && producer->op == Op::kTranspose) {
      const std::vector<int64_t>& inner = producer->attributes.integers("perm");
      for (int64_t& d : perm) d = inner[static_cast<size_t>(d)];
      candidate = {Op::kTranspose, producer->operands, {{"perm", perm}}};
    }
    if (std::is_sorted(perm.begin(), perm.end())) return candidate.operands[0];
    const Shape& shape = graph_.shape(candidate.operands[0]);
    std::erase_if(perm, [&](int64_t d) { return shape[static_cast<size_t>(d)] == 1; });
    if (!std::is_sorted(perm.begin(), perm.end())) return kNone;
    candidate = {Op::kReshape, candidate.operands, {{"shape", result_type(candidate).shape}}};
    return simplify(candidate);
  }

  ValueId if_whole_slice(const Candidate& candidate) const {
    const auto is_one = [](int64_t step) { return step == 1; };
    const std::vector<int64_t>& steps = candidate.attributes.integers("steps");
    return std::all_of(steps.begin(), steps.end(), is_one) ? if_same_type(candidate) : kNone;
  }

  ValueId without_unit_axes(Candidate& candidate) const {
    const Shape& shape = graph_.shape(candidate.operands[0]);
    std::vector<int64_t> axes = candidate.attributes.integers("axes");
    std::erase_if(axes, [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == 1; });
    if (axes.empty()) return candidate.operands[0];
    candidate.attributes.set("axes", std::move(axes));
    return kNone;
  }

  // Replaces broadcasts among the operands by what they broadcast, where the result keeps its
  // shape without them.
  void absorb_broadcasts(Candidate& candidate) const {
    if (info(candidate.op).kind != OpKind::kElementwise || candidate.operands.size() < 2) return;
    const TensorType type = result_type(candidate);
    for (ValueId& operand : candidate.operands) {
      const Node* producer = graph_.producer(operand);
      if (producer == nullptr || producer->op != Op::kBroadcast) continue;
      const ValueId broadcast = operand;
      operand = producer->operands[0];
      if (result_type(candidate) != type) operand = broadcast;
    }
  }

  // (a b)' is b' a', with the same sums: what stores a product by columns writes each element to a
  // line of memory of its own.
  void move_into_product(Candidate& candidate) const {
    const Node* product = graph_.producer(candidate.operands[0]);
    if (product == nullptr || product->op != Op::kMatMul) return;
    std::vector<int64_t> perm = candidate.attributes.integers("perm");
    for (const ValueId operand : product->operands) {
      if (graph_.shape(operand).size() != perm.size()) return;
    }
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (!std::is_sorted(perm.begin(), perm.end())) return;
    const auto flipped = [&](const char* flag) {
      return 1 - product->attributes.integer_or(flag, 0);
    };
    std::vector<std::string>& sources = graph_.context().sources;
    sources.insert(sources.begin(), product->sources.begin(), product->sources.end());
    Attributes attributes = product->attributes;
    attributes.set("transpose_a", flipped("transpose_b"));
    attributes.set("transpose_b", flipped("transpose_a"));
    candidate = {Op::kMatMul, {product->operands[1], product->operands[0]}, attributes};
  }

  void absorb_transpose(Candidate& candidate, size_t position, const std::string& flag) const {
    const Node* producer = graph_.producer(candidate.operands[position]);
    if (producer == nullptr || producer->op != Op::kTranspose) return;
    std::vector<int64_t> perm = producer->attributes.integers("perm");
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (!std::is_sorted(perm.begin(), perm.end())) return;
    candidate.operands[position] = producer->operands[0];
    candidate.attributes.set(flag, 1 - candidate.attributes.integer_or(flag, 0));
  }

  // The value of a further node, simplified.
  ValueId append(Candidate candidate) {
    graph_.context().id = 0;
    const ValueId simple = simplify(candidate);
    if (simple != kNone) return simple;
    return graph_.add(candidate.op, candidate.operands, candidate.attributes);
  }

  ValueId reshaped(ValueId value, const Shape& shape) {
    return append({Op::kReshape, {value}, {{"shape", shape}}});
  }

  // [..., m, k] times one matrix: the batches are rows, so that kernels see one large product.
  ValueId fold_batches(const Candidate& candidate) {
    const Shape a = graph_.shape(candidate.operands[0]);
    const Shape b = graph_.shape(candidate.operands[1]);
    const bool one_matrix = element_count(Shape(b.begin(), b.end() - 2)) == 1;
    if (!one_matrix || std::max(a.size(), b.size()) == 2) return kNone;
    if (candidate.attributes.integer_or("transpose_a", 0) != 0) return kNone;
    const int64_t rows = element_count(Shape(a.begin(), a.end() - 1));
    const ValueId product = append({Op::kMatMul,
                                    {reshaped(candidate.operands[0], {rows, a.back()}),
                                     reshaped(candidate.operands[1], Shape(b.end() - 2, b.end()))},
                                    candidate.attributes});
    return reshaped(product, result_type(candidate).shape);
  }

  Graph& graph_;
};

}  // namespace

Graph simplify(const Graph& graph) {
  Cloner cloner(graph);
  std::vector<size_t> uses;
  for (const auto& users : users_of(graph)) uses.push_back(users.size());
  for (const Output& output : graph.outputs) ++uses[static_cast<size_t>(output.value)];
  for (const Update& update : graph.updates) ++uses[static_cast<size_t>(update.value)];
  Simplifier simplifier(cloner.target());
  for (const Node& node : graph.nodes) {
    if (node.results.size() != 1 || info(node.op).kind == OpKind::kMicroBatch ||
        info(node.op).kind == OpKind::kCollective) {
      cloner.clone(node);
      continue;
    }
    Candidate candidate = {node.op, {}, node.attributes};
    for (const ValueId operand : node.operands) candidate.operands.push_back(cloner[operand]);
    candidate.sole_user =
        !node.operands.empty() && uses[static_cast<size_t>(node.operands[0])] == 1;
    cloner.inherit(node);
    ValueId result = simplifier.simplify(candidate);
    if (result == kNone) {
      result = cloner.target().add(candidate.op, candidate.operands, candidate.attributes,
                                   graph.value(node.results[0]).name);
    }
    cloner.replace(node.results[0], result);
  }
  return cloner.finish();
}

}  // namespace sgtc
