#include "passes/simplify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/clone.h"

namespace sgtc {
namespace {

// A node about to be appended to the target, with the target's operands.
struct Candidate {
  Op op;
  std::vector<ValueId> operands;
  Attributes attributes;
  bool sole_user = false;        // of its first operand
  bool feeds_functions = false;  // an exponential or the like, and products
};

class Simplifier {
 public:
  explicit Simplifier(Cloner& cloner) : cloner_(cloner) {}

  void run(const Node& node, bool sole_user, bool feeds_functions) {
    node_ = &node;
    product_sources_ = {};
    Candidate candidate = {node.op, {}, node.attributes, sole_user, feeds_functions};
    candidate.operands.reserve(node.operands.size());
    for (const ValueId operand : node.operands) candidate.operands.push_back(cloner_[operand]);
    const ValueId simple = simplify(candidate);
    if (simple != kNone) {
      cloner_.replace(node.results[0], simple);
    } else if (candidate.op == node.op && has_operands_of(candidate, node) &&
               candidate.attributes == node.attributes) {
      cloner_.clone(node);
    } else {
      const std::string& name = cloner_.source().value(node.results[0]).name;
      cloner_.replace(node.results[0],
                      target().add(candidate.op, candidate.operands, candidate.attributes, name));
    }
  }

 private:
  const Graph& graph() const { return cloner_.made(); }

  bool has_operands_of(const Candidate& candidate, const Node& node) const {
    return std::equal(candidate.operands.begin(), candidate.operands.end(), node.operands.begin(),
                      node.operands.end(),
                      [&](ValueId operand, ValueId old) { return operand == cloner_[old]; });
  }

  // To append what stands for the node.
  Graph& target() {
    cloner_.inherit(*node_);
    Graph& target = cloner_.target();
    Sources sources = product_sources_;
    sources.add(node_->sources);
    target.context().sources = std::move(sources);
    return target;
  }

  // A value equal to the candidate's result, or kNone when it must be appended as it is.
  // `candidate` may be changed to a simpler one in place.
  ValueId simplify(Candidate& candidate) {
    if (candidate.op == Op::kTranspose && candidate.sole_user) move_into_product(candidate);
    absorb_broadcasts(candidate);
    switch (candidate.op) {
      case Op::kMul:
        return without_neutral(candidate, 1, true);
      case Op::kDiv:
        invert_divisor(candidate);
        return without_neutral(candidate, 1, candidate.op == Op::kMul);
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

  TensorType result_type(const Candidate& candidate) const {
    OperandTypes types;
    for (const ValueId operand : candidate.operands) types.push_back(&graph().type(operand));
    return std::move(infer_types(candidate.op, types, candidate.attributes)[0]);
  }

  // The first operand if its type is the result's.
  ValueId if_same_type(const Candidate& candidate) const {
    const ValueId operand = candidate.operands[0];
    return graph().type(operand) == result_type(candidate) ? operand : kNone;
  }

  // The value that all elements of a constant have, seen through broadcasts.
  std::optional<double> uniform(ValueId id) const {
    while (const Node* producer = graph().producer(id)) {
      if (producer->op != Op::kBroadcast && producer->op != Op::kReshape) return std::nullopt;
      id = producer->operands[0];
    }
    const Value& value = graph().value(id);
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
    return !is_float(graph().dtype(id)) || std::signbit(*value) == std::signbit(wanted);
  }

  ValueId without_neutral(const Candidate& candidate, double neutral, bool commutative) const {
    const auto has_type = [&](ValueId x) { return graph().type(x) == result_type(candidate); };
    const ValueId a = candidate.operands[0];
    const ValueId b = candidate.operands[1];
    if (is_uniform(b, neutral) && has_type(a)) return a;
    if (commutative && is_uniform(a, neutral) && has_type(b)) return b;
    return kNone;
  }

  // x / c that a function takes, whose own error is larger, is x * (1 / c).
  void invert_divisor(Candidate& candidate) {
    const std::optional<double> divisor = uniform(candidate.operands[1]);
    const DType dtype = graph().dtype(candidate.operands[0]);
    if (!candidate.feeds_functions || !divisor ||
        !std::isnormal(static_cast<float>(1 / *divisor)) ||
        graph().type(candidate.operands[0]) != result_type(candidate)) {
      return;
    }
    candidate.op = Op::kMul;
    candidate.operands[1] = target().add_scalar(dtype, 1 / *divisor);
  }

  ValueId simplify_pow(Candidate& candidate) {
    const ValueId base = candidate.operands[0];
    if (graph().type(base) != result_type(candidate)) return kNone;
    const std::optional<double> exponent = uniform(candidate.operands[1]);
    const bool is_real = is_float(graph().dtype(base));
    // A real power of an integer saturates, a product wraps.
    if (!exponent || (!is_real && is_float(graph().dtype(candidate.operands[1])))) return kNone;
    if (*exponent == 1) return base;
    if (*exponent == 2) candidate = {Op::kMul, {base, base}, {}};
    if (*exponent == 0.5 && is_real) candidate = {Op::kSqrt, {base}, {}};
    return kNone;
  }

  // x for op(op(x)).
  ValueId inner_of_same(const Candidate& candidate) const {
    const Node* producer = graph().producer(candidate.operands[0]);
    return producer != nullptr && producer->op == candidate.op ? producer->operands[0] : kNone;
  }

  ValueId simplify_where(Candidate& candidate) {
    const std::optional<double> condition = uniform(candidate.operands[0]);
    if (!condition) return kNone;
    const TensorType type = result_type(candidate);
    const ValueId taken = candidate.operands[*condition != 0 ? 1 : 2];
    if (graph().type(taken) == type) return taken;
    candidate = {Op::kBroadcast, {taken}, {{"shape", type.shape}}};
    return kNone;
  }

  // Takes the operand of the operand when that is computed by `op`.
  void look_through(Candidate& candidate, Op op) const {
    const Node* producer = graph().producer(candidate.operands[0]);
    if (producer != nullptr && producer->op == op) candidate.operands = producer->operands;
  }

  ValueId simplify_transpose(Candidate& candidate) {
    std::vector<int64_t> perm = candidate.attributes.integers("perm");
    const Node* producer = graph().producer(candidate.operands[0]);
    if (producer != nullptr && producer->op == Op::kTranspose) {
      const std::vector<int64_t>& inner = producer->attributes.integers("perm");
      for (int64_t& d : perm) d = inner[static_cast<size_t>(d)];
      candidate = {Op::kTranspose, producer->operands, {{"perm", perm}}};
    }
    if (std::is_sorted(perm.begin(), perm.end())) return candidate.operands[0];
    const Shape& shape = graph().shape(candidate.operands[0]);
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
    const Shape& shape = graph().shape(candidate.operands[0]);
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
    std::optional<TensorType> type;
    for (ValueId& operand : candidate.operands) {
      const Node* producer = graph().producer(operand);
      if (producer == nullptr || producer->op != Op::kBroadcast) continue;
      if (!type) type = result_type(candidate);
      const ValueId broadcast = operand;
      operand = producer->operands[0];
      if (result_type(candidate) != type) operand = broadcast;
    }
  }

  // (a b)' is b' a', with the same sums: what stores a product by columns writes each element to a
  // line of memory of its own.
  void move_into_product(Candidate& candidate) {
    const Node* product = graph().producer(candidate.operands[0]);
    if (product == nullptr || product->op != Op::kMatMul) return;
    std::vector<int64_t> perm = candidate.attributes.integers("perm");
    for (const ValueId operand : product->operands) {
      if (graph().shape(operand).size() != perm.size()) return;
    }
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (!std::is_sorted(perm.begin(), perm.end())) return;
    const auto flipped = [&](const char* flag) {
      return 1 - product->attributes.integer_or(flag, 0);
    };
    product_sources_ = product->sources;
    Attributes attributes = product->attributes;
    attributes.set("transpose_a", flipped("transpose_b"));
    attributes.set("transpose_b", flipped("transpose_a"));
    candidate = {Op::kMatMul, {product->operands[1], product->operands[0]}, attributes};
  }

  void absorb_transpose(Candidate& candidate, size_t position, const std::string& flag) const {
    const Node* producer = graph().producer(candidate.operands[position]);
    if (producer == nullptr || producer->op != Op::kTranspose) return;
    std::vector<int64_t> perm = producer->attributes.integers("perm");
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (!std::is_sorted(perm.begin(), perm.end())) return;
    candidate.operands[position] = producer->operands[0];
    candidate.attributes.set(flag, 1 - candidate.attributes.integer_or(flag, 0));
  }

  // The value of a further node, simplified.
  ValueId append(Candidate candidate) {
    const ValueId simple = simplify(candidate);
    if (simple != kNone) return simple;
    Graph& target = this->target();
    target.context().id = 0;
    return target.add(candidate.op, candidate.operands, candidate.attributes);
  }

  ValueId reshaped(ValueId value, const Shape& shape) {
    return append({Op::kReshape, {value}, {{"shape", shape}}});
  }

  // [..., m, k] times one matrix: the batches are rows, so that kernels see one large product.
  ValueId fold_batches(const Candidate& candidate) {
    const Shape a = graph().shape(candidate.operands[0]);
    const Shape b = graph().shape(candidate.operands[1]);
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

  Cloner& cloner_;
  const Node* node_ = nullptr;
  Sources product_sources_;  // of the product that the node moved into
};

bool is_function(Op op) {
  return op == Op::kErf || op == Op::kExp || op == Op::kTanh || op == Op::kSigmoid ||
         op == Op::kSoftplus;
}

// Per value: whether functions read it, and beside them only products.
std::vector<bool> values_for_functions(const Graph& graph) {
  std::vector<bool> functions(graph.values.size(), false), others = functions;
  for (const Node& node : graph.nodes) {
    for (const ValueId operand : node.operands) {
      if (is_function(node.op)) functions[static_cast<size_t>(operand)] = true;
      if (!is_function(node.op) && node.op != Op::kMul) others[static_cast<size_t>(operand)] = true;
    }
  }
  for (size_t v = 0; v < functions.size(); ++v) functions[v] = functions[v] && !others[v];
  return functions;
}

}  // namespace

Graph simplify(Graph graph) {
  Cloner cloner(std::move(graph));
  const Graph& source = cloner.source();
  const std::vector<int64_t> uses = count_uses(source);
  const std::vector<bool> feeds_functions = values_for_functions(source);
  Simplifier simplifier(cloner);
  for (const Node& node : source.nodes) {
    if (node.results.size() != 1 || info(node.op).kind == OpKind::kMicroBatch ||
        info(node.op).kind == OpKind::kCollective) {
      cloner.clone(node);
    } else {
      simplifier.run(node,
                     !node.operands.empty() && uses[static_cast<size_t>(node.operands[0])] == 1,
                     feeds_functions[static_cast<size_t>(node.results[0])]);
    }
  }
  return cloner.finish();
}

}  // namespace sgtc
