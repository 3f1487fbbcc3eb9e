// The analysis is one pass over the nodes. A rule sees the facts of the operands and says where the
// batch is in the results. Positions matter, not only dependence: a softmax over classes keeps
// samples apart and a softmax over the batch does not, and a reshape from [B,T,C] to [B*T,C] keeps
// the batch as the major part of a dimension, which a later sum removes together with T.
//
// Left out: rules that need values (a gather whose indices happen to be the identity), and rows
// that are divided by a total before they are summed. A division by the constant number of elements
// counts as a mean before the sum as well as after it.
#include "passes/batch_axis.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autodiff/expressions.h"

namespace sgtc {
namespace {

constexpr BatchFact kFreeFact{};

BatchFact rows_at(int64_t dim) { return {BatchKind::kRows, dim, false, kNone}; }
BatchFact sum_fact(bool counted) { return {BatchKind::kSum, 0, counted, kNone}; }

bool contains(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph), facts_(graph.values.size()) {}

  std::vector<BatchFact> run() {
    for (ValueId feed : graph_.feeds) {
      const Shape& shape = graph_.shape(feed);
      // As the runtime reads it: a sample may have several rows.
      const bool has_samples = rows() > 0 && !shape.empty() && shape[0] > 0;
      if (has_samples && shape[0] % rows() == 0) facts_[index(feed)] = rows_at(0);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      visit(graph_.nodes[i], static_cast<NodeId>(i));
    }
    return std::move(facts_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  int64_t rows() const { return graph_.micro_batch_rows; }
  const BatchFact& fact(const Node& node, size_t operand) const {
    return facts_[index(node.operands[operand])];
  }
  const Shape& shape(const Node& node, size_t operand) const {
    return graph_.shape(node.operands[operand]);
  }
  int64_t rank(const Node& node, size_t operand) const {
    return static_cast<int64_t>(shape(node, operand).size());
  }
  int64_t result_rank(const Node& node) const {
    return static_cast<int64_t>(graph_.shape(node.results[0]).size());
  }
  BatchFact mixed() const { return {BatchKind::kMixed, 0, false, node_}; }

  bool has(const Node& node, BatchKind kind) const {
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId id) { return facts_[index(id)].kind == kind; });
  }
  bool is_free(const Node& node, size_t operand) const {
    return fact(node, operand).kind == BatchKind::kFree;
  }
  bool is_rows(const Node& node, size_t operand) const {
    return fact(node, operand).kind == BatchKind::kRows;
  }

  void visit(const Node& node, NodeId id) {
    node_ = id;
    const BatchFact result = derive(node);
    for (ValueId value : node.results) facts_[index(value)] = result;
    if (node.op == Op::kNormalize && result.kind == BatchKind::kRows &&
        contains(node.attributes.integers("axes"), result.dim)) {
      facts_[index(node.results[1])] = mixed();
      facts_[index(node.results[2])] = mixed();
    }
  }

  BatchFact derive(const Node& node) {
    for (ValueId operand : node.operands) {
      if (facts_[index(operand)].kind == BatchKind::kMixed) return facts_[index(operand)];
    }
    const bool has_sums = has(node, BatchKind::kSum) || has(node, BatchKind::kTotal);
    const bool has_rows = has(node, BatchKind::kRows);
    if (has_sums) return has_rows ? mixed() : derive_from_sums(node);
    if (info(node.op).kind == OpKind::kRandom) return derive_random(node);
    return has_rows ? derive_from_rows(node) : kFreeFact;
  }

  BatchFact derive_random(const Node& node) {
    const Shape& shape = graph_.shape(node.results[0]);
    return rows() > 0 && !shape.empty() && shape[0] == rows() ? rows_at(0) : kFreeFact;
  }

  // Operands are free, sums and totals.

  BatchFact derive_from_sums(const Node& node) const {
    if (has(node, BatchKind::kTotal)) return total(node);
    const BatchFact& first = fact(node, 0);
    switch (node.op) {
      case Op::kNeg:
      case Op::kReshape:
      case Op::kTranspose:
      case Op::kBroadcast:
      case Op::kSlice:
      case Op::kReduceSum:
        return first;
      case Op::kCast:
        return is_float(graph_.dtype(node.results[0])) ? first : total(node);
      case Op::kAdd:
      case Op::kSub:
      case Op::kConcat:
        return all_equal(node) ? first : total(node);
      case Op::kMul:
      case Op::kMatMul:
        if (is_free(node, 0)) return fact(node, 1);
        return is_free(node, 1) ? first : total(node);
      case Op::kDiv:
        if (!is_free(node, 1) || !is_float(graph_.dtype(node.results[0]))) return total(node);
        return sum_fact(first.counted || is_batch_count(graph_, node.operands[1], rows()));
      default:
        return total(node);
    }
  }

  BatchFact total(const Node& node) const {
    const bool counted = std::any_of(node.operands.begin(), node.operands.end(),
                                     [&](ValueId id) { return facts_[index(id)].counted; });
    return {BatchKind::kTotal, 0, counted, kNone};
  }

  bool all_equal(const Node& node) const {
    return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId id) {
      return facts_[index(id)] == facts_[index(node.operands[0])];
    });
  }

  // Operands are free and rows, at least one of them rows.

  BatchFact derive_from_rows(const Node& node) {
    switch (info(node.op).kind) {
      case OpKind::kElementwise:
        return aligned(node, result_rank(node));
      case OpKind::kMovement:
        return moved(node);
      case OpKind::kIndexing:
        return indexed(node);
      case OpKind::kReduction:
        return reduced(node);
      case OpKind::kContraction:
        return node.op == Op::kMatMul ? multiplied(node) : per_sample(node);
      case OpKind::kComposition:
        return composed(node);
      default:
        return mixed();
    }
  }

  /// All rows at the same dimension, counted from the right in `rank` dimensions.
  BatchFact aligned(const Node& node, int64_t rank) const {
    int64_t dim = -1;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (!is_rows(node, i)) continue;
      const int64_t here = fact(node, i).dim + rank - this->rank(node, i);
      if (dim >= 0 && here != dim) return mixed();
      dim = here;
    }
    return rows_at(dim);
  }

  /// `aligned`, for operators that combine elements along `axis`.
  BatchFact aligned_off_axis(const Node& node) const {
    const BatchFact result = aligned(node, result_rank(node));
    const bool combines = result.dim == node.attributes.integer("axis");
    return combines ? mixed() : result;
  }

  BatchFact moved(const Node& node) const {
    const int64_t dim = fact(node, 0).dim;
    const auto d = static_cast<size_t>(dim);
    const Attributes& attributes = node.attributes;
    switch (node.op) {
      case Op::kReshape:
        return reshaped(shape(node, 0), dim, graph_.shape(node.results[0]));
      case Op::kTranspose: {
        const auto& perm = attributes.integers("perm");
        return rows_at(std::find(perm.begin(), perm.end(), dim) - perm.begin());
      }
      case Op::kBroadcast:
        return rows_at(dim + result_rank(node) - rank(node, 0));
      case Op::kSlice: {
        const bool is_whole = attributes.integers("sizes")[d] == shape(node, 0)[d] &&
                              attributes.integers("steps")[d] == 1;
        return is_whole ? rows_at(dim) : mixed();
      }
      case Op::kPad: {
        const bool is_kept = is_rows(node, 0) && is_free(node, 1) &&
                             attributes.integers("low")[d] == 0 &&
                             attributes.integers("high")[d] == 0;
        return is_kept ? rows_at(dim) : mixed();
      }
      case Op::kConcat:
        return aligned_off_axis(node);
      default:
        return mixed();
    }
  }

  /// The batch stays the major part of the dimension that has as many elements before it.
  BatchFact reshaped(const Shape& from, int64_t dim, const Shape& to) const {
    const int64_t before = element_count({from.begin(), from.begin() + dim});
    int64_t product = 1;
    for (size_t i = 0; i < to.size() && product <= before; ++i) {
      if (product == before && to[i] % rows() == 0) return rows_at(static_cast<int64_t>(i));
      product *= to[i];
    }
    return mixed();
  }

  BatchFact indexed(const Node& node) const {
    switch (node.op) {
      case Op::kGather:
        return gathered(node);
      case Op::kGatherNd: {
        const bool batched = node.attributes.integer("batch_dims") > 0;
        if (!batched && is_rows(node, 0) && is_free(node, 1)) {
          return rows_at_or_mixed(axis_of_own_rows(node, fact(node, 0).dim, shape(node, 1).back()));
        }
        const bool both = is_rows(node, 0) && is_rows(node, 1);
        const bool fits = batched ? both && fact(node, 0).dim == 0 && fact(node, 1).dim == 0
                                  : is_free(node, 0) && fact(node, 1).dim + 1 < rank(node, 1);
        return fits ? fact(node, 1) : mixed();
      }
      case Op::kGatherElements:
        // Rows of indices into a table that all samples share stay apart along any axis.
        return is_free(node, 0) ? fact(node, 1) : aligned_off_axis(node);
      case Op::kPick:
      case Op::kScatterElements:
        return aligned_off_axis(node);
      default:
        return mixed();
    }
  }

  BatchFact gathered(const Node& node) const {
    const int64_t axis = node.attributes.integer("axis");
    if (is_free(node, 0)) return rows_at(axis + fact(node, 1).dim);
    const int64_t dim = fact(node, 0).dim;
    if (!is_free(node, 1)) return mixed();
    if (dim == axis) {
      const int64_t own = axis_of_own_rows(node, 0, 1);
      return rows_at_or_mixed(own < 0 ? own : axis + own);
    }
    return rows_at(dim < axis ? dim : dim - 1 + rank(node, 1));
  }

  BatchFact rows_at_or_mixed(int64_t dim) const { return dim < 0 ? mixed() : rows_at(dim); }

  /// Constant indices into rows that keep samples apart, as exporters write attention masks: along
  /// one axis of the indices, each sample takes elements of its own rows alone. Returns that axis,
  /// or -1. An index is a vector of `width` numbers, of which number `component` selects the row.
  int64_t axis_of_own_rows(const Node& node, int64_t component, int64_t width) const {
    const Value& value = graph_.value(node.operands[1]);
    const int64_t extent = shape(node, 0)[static_cast<size_t>(fact(node, 0).dim)];
    if (value.kind != ValueKind::kConstant || component >= width || rows() == 0) return -1;
    Shape indices = value.type.shape;
    if (node.op == Op::kGatherNd) indices.pop_back();
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const int64_t inner = element_count({indices.begin() + axis + 1, indices.end()});
      if (indices[axis] % rows() != 0) continue;
      const int64_t part = indices[axis] / rows();
      bool own = true;
      for (int64_t i = 0; own && i < element_count(indices); ++i) {
        const int64_t index = value.literal->as_int(i * width + component);
        const int64_t row = (index < 0 ? index + extent : index) / (extent / rows());
        own = row == i / inner % indices[axis] / part;
      }
      if (own) return static_cast<int64_t>(axis);
    }
    return -1;
  }

  BatchFact reduced(const Node& node) const {
    const BatchFact& rows = fact(node, 0);
    if (!node.attributes.has("axes")) return aligned_off_axis(node);
    if (!contains(node.attributes.integers("axes"), rows.dim)) return rows;
    return node.op == Op::kReduceSum ? sum_fact(is_counted(node.operands[0])) : mixed();
  }

  /// Whether each element was divided, before it is summed, by the number of all elements. A mean
  /// over another dimension, which may have as many, is no such division.
  bool is_counted(ValueId id) const {
    const Node* node = graph_.producer(id);
    while (node != nullptr && (node->op == Op::kNeg || node->op == Op::kCast ||
                               node->op == Op::kReshape || node->op == Op::kReduceSum)) {
      node = graph_.producer(node->operands[0]);
    }
    if (node == nullptr || node->op != Op::kDiv) return false;
    const std::optional<double> divisor = uniform_constant(graph_, node->operands[1]);
    const int64_t elements = element_count(graph_.shape(node->results[0]));
    return divisor && *divisor == static_cast<double>(elements) &&
           is_batch_count(graph_, node->operands[1], rows()) &&
           !sums_as_many(node->operands[0], elements);
  }

  bool sums_as_many(ValueId id, int64_t elements) const {
    const Node* node = graph_.producer(id);
    while (node != nullptr && node->op == Op::kReshape) node = graph_.producer(node->operands[0]);
    if (node == nullptr || node->op != Op::kReduceSum) return false;
    const int64_t before = element_count(shape(*node, 0));
    return before == elements * element_count(graph_.shape(node->results[0]));
  }

  /// Which part of a matrix product the batch is in, of one operand.
  enum class Part { kNone, kLeading, kOuter, kInner };

  Part part_of(const Node& node, size_t operand) const {
    if (!is_rows(node, operand)) return Part::kNone;
    const int64_t from_end = rank(node, operand) - fact(node, operand).dim;
    if (from_end > 2) return Part::kLeading;
    const bool transposed =
        node.attributes.integer_or(operand == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    // The inner dimension is the last one of a and the one before of b.
    const int64_t inner_from_end = (operand == 0) != transposed ? 1 : 2;
    return from_end == inner_from_end ? Part::kInner : Part::kOuter;
  }

  BatchFact multiplied(const Node& node) const {
    const Part a = part_of(node, 0);
    const Part b = part_of(node, 1);
    const int64_t rank = result_rank(node);
    const bool one = a == Part::kNone || b == Part::kNone;
    if (!one && a != b) return mixed();
    switch (a == Part::kNone ? b : a) {
      case Part::kLeading:
        return aligned(node, rank);
      case Part::kInner:
        return sum_fact(false);
      default:
        if (!one) return mixed();
        return rows_at(b == Part::kNone ? rank - 2 : rank - 1);
    }
  }

  /// Operators whose first operand has samples in dimension 0 and whose others are free.
  BatchFact per_sample(const Node& node) const {
    const bool is_first = is_rows(node, 0) && fact(node, 0).dim == 0;
    for (size_t i = 1; i < node.operands.size(); ++i) {
      if (!is_free(node, i)) return mixed();
    }
    return is_first ? rows_at(0) : mixed();
  }

  BatchFact composed(const Node& node) const {
    switch (node.op) {
      case Op::kNormalize:
        return fact(node, 0);
      case Op::kSoftmax:
      case Op::kLogSoftmax:
        return aligned_off_axis(node);
      case Op::kAttention: {
        bool apart = true;
        for (size_t i = 0; i < 3; ++i) apart = apart && is_rows(node, i) && fact(node, i).dim == 0;
        return apart ? aligned(node, 4) : mixed();
      }
      default:
        return mixed();
    }
  }

  const Graph& graph_;
  std::vector<BatchFact> facts_;
  NodeId node_ = kNone;
};

}  // namespace

std::vector<BatchFact> find_batch_axes(const Graph& graph) { return Analysis(graph).run(); }

bool is_batch_count(const Graph& graph, ValueId id, int64_t rows) {
  const std::optional<double> count = uniform_constant(graph, id);
  return count && rows > 0 && *count >= 1 && std::fmod(*count, static_cast<double>(rows)) == 0;
}

}  // namespace sgtc
