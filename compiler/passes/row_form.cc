#include "passes/row_form.h"

#include <algorithm>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Dim = Shape::difference_type;

bool all_ones(Shape::const_iterator begin, Shape::const_iterator end) {
  return std::all_of(begin, end, [](int64_t size) { return size == 1; });
}

// Whether the first `dims` dimensions are the same.
bool leads_alike(const Shape& a, const Shape& b, size_t dims) {
  return a.size() >= dims && b.size() >= dims &&
         std::equal(a.begin(), a.begin() + static_cast<Dim>(dims), b.begin());
}

// Whether a row is one line of elements: all its dimensions but the last have size 1.
bool has_flat_rows(const Shape& shape, size_t dims) {
  return dims > 0 && dims < shape.size() &&
         all_ones(shape.begin() + static_cast<Dim>(dims), shape.end() - 1);
}

class RowFormFinder {
 public:
  RowFormFinder(const Graph& graph, const Node& node, int64_t rows)
      : graph_(graph), node_(node), rows_(rows) {}

  std::optional<RowForm> run() {
    if (node_.results.size() != 1) return {};
    result_ = &graph_.shape(node_.results[0]);
    dims_ = row_dims(*result_, rows_);
    form_.by_rows.assign(node_.operands.size(), false);
    const OpKind kind = info(node_.op).kind;
    const bool known = kind == OpKind::kElementwise || node_.op == Op::kBroadcast ? broadcasts()
                       : node_.op == Op::kMatMul                                  ? is_product()
                       : kind == OpKind::kReduction                               ? is_reduction()
                                                                                  : keeps_rows();
    return known ? std::optional(form_) : std::nullopt;
  }

 private:
  const Shape& shape(size_t i) const { return graph_.shape(node_.operands[i]); }

  bool is_by_rows(size_t i) { return form_.by_rows[i] = leads_alike(shape(i), *result_, dims_); }

  // Operands either have the result's rows or are stretched over all of them.
  bool broadcasts() {
    if (dims_ == 0) return false;
    for (size_t i = 0; i < node_.operands.size(); ++i) {
      const Shape& operand = shape(i);
      const size_t missing = result_->size() - operand.size();
      if (missing == 0 && is_by_rows(i)) continue;
      const size_t within = dims_ > missing ? dims_ - missing : 0;
      if (!all_ones(operand.begin(), operand.begin() + static_cast<Dim>(within))) return false;
    }
    return true;
  }

  bool is_product() {
    const Shape &a = shape(0), &b = shape(1);
    const bool transpose_a = node_.attributes.integer_or("transpose_a", 0) != 0;
    if (!transpose_a) {
      form_.by_rows[0] = true;
      return has_flat_rows(*result_, dims_) && has_flat_rows(a, row_dims(a, rows_)) &&
             all_ones(b.begin(), b.end() - 2);
    }
    form_.by_rows = {true, true};
    form_.adds_up = true;
    return node_.attributes.integer_or("transpose_b", 0) == 0 && is_matrix_of_rows(a) &&
           is_matrix_of_rows(b);
  }

  bool is_matrix_of_rows(const Shape& shape) const {
    return all_ones(shape.begin(), shape.end() - 2) && *(shape.end() - 2) == rows_;
  }

  std::vector<int64_t> reduced_axes() const {
    if (node_.attributes.has("axes")) return node_.attributes.integers("axes");
    return {node_.attributes.integer("axis")};
  }

  // Within each row, or of all rows to a sum.
  bool is_reduction() {
    if (node_.op == Op::kCumSum || node_.op == Op::kTopK) return false;
    const size_t dims = row_dims(shape(0), rows_);
    if (dims == 0) return false;
    form_.by_rows[0] = true;
    const std::vector<int64_t> axes = reduced_axes();
    const auto inner = [&](int64_t axis) { return axis >= static_cast<int64_t>(dims); };
    if (std::all_of(axes.begin(), axes.end(), inner)) return true;
    form_.adds_up = true;
    const DType dtype = graph_.dtype(node_.results[0]);
    if (node_.op != Op::kReduceSum || dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
      return false;
    }
    for (size_t d = 0; d < dims; ++d) {
      const bool reduced = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) != 0;
      if (!reduced && shape(0)[d] != 1) return false;
    }
    return true;
  }

  // Movements and indexing within each row.
  bool keeps_rows() {
    if (dims_ == 0 || node_.operands.empty()) return false;
    const size_t dims = row_dims(shape(0), rows_);
    if (node_.op == Op::kReshape) return form_.by_rows[0] = dims > 0;
    if (dims != dims_ || !is_by_rows(0)) return false;
    const auto axis = [&] { return node_.attributes.integer("axis"); };
    switch (node_.op) {
      case Op::kTranspose:
      case Op::kSlice:
      case Op::kPad:
        return leaves_rows();
      case Op::kPick:
      case Op::kGatherElements:
        return is_by_rows(1) && axis() >= static_cast<int64_t>(dims_);
      case Op::kConcat: {
        bool alike = axis() >= static_cast<int64_t>(dims_);
        for (size_t i = 0; i < node_.operands.size(); ++i) alike = is_by_rows(i) && alike;
        return alike;
      }
      default:
        return false;
    }
  }

  // Whether a movement leaves the first dimensions as they are.
  bool leaves_rows() const {
    for (size_t d = 0; d < dims_; ++d) {
      const auto at = [&](const char* list) { return node_.attributes.integers(list)[d]; };
      const bool left = node_.op == Op::kTranspose ? at("perm") == static_cast<int64_t>(d)
                        : node_.op == Op::kSlice   ? at("starts") == 0 && at("steps") == 1
                                                   : at("low") == 0 && at("high") == 0;
      if (!left) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Node& node_;
  const int64_t rows_;
  const Shape* result_ = nullptr;
  size_t dims_ = 0;  // of the result
  RowForm form_;
};

// Attributes for a value that has its rows in one dimension instead of `dims`.
class PartAttributes {
 public:
  PartAttributes(const Node& node, size_t dims) : attributes_(node.attributes), dims_(dims) {}

  Attributes run(Op op, const Shape& operand, const Shape& result) {
    if (op == Op::kReshape || op == Op::kBroadcast) attributes_.set("shape", result);
    if (attributes_.has("axis")) attributes_.set("axis", inner(attributes_.integer("axis")));
    if (attributes_.has("axes")) attributes_.set("axes", inner_axes());
    if (op == Op::kTranspose) {
      std::vector<int64_t> perm = tail("perm", 0);
      for (size_t d = 1; d < perm.size(); ++d) perm[d] = inner(perm[d]);
      attributes_.set("perm", perm);
    }
    if (op == Op::kSlice) {
      attributes_.set("starts", tail("starts", 0));
      attributes_.set("steps", tail("steps", 1));
      attributes_.set("sizes", tail("sizes", operand[0]));
    }
    if (op == Op::kPad) {
      attributes_.set("low", tail("low", 0));
      attributes_.set("high", tail("high", 0));
    }
    return attributes_;
  }

 private:
  int64_t inner(int64_t axis) const {
    return std::max<int64_t>(axis - static_cast<int64_t>(dims_) + 1, 0);
  }

  std::vector<int64_t> inner_axes() const {
    std::vector<int64_t> axes;
    for (const int64_t axis : attributes_.integers("axes")) {
      if (axes.empty() || axes.back() != inner(axis)) axes.push_back(inner(axis));
    }
    return axes;
  }

  // A list with one entry per dimension.
  std::vector<int64_t> tail(const char* list, int64_t rows) const {
    const std::vector<int64_t>& all = attributes_.integers(list);
    std::vector<int64_t> part = {rows};
    part.insert(part.end(), all.begin() + static_cast<Dim>(dims_), all.end());
    return part;
  }

  Attributes attributes_;
  const size_t dims_;
};

ValueId append_product(Expressions& e, const Node& node, bool adds_up, int64_t part,
                       const std::vector<ValueId>& operands) {
  const auto matrix = [&](ValueId x, int64_t lines) {
    return e.reshape(x, {lines, e.shape(x).back()});
  };
  const ValueId b = operands[1];
  const int64_t lines = adds_up ? part : e.size(b, e.rank(b) - 2);
  Attributes attributes = node.attributes;
  const DType dtype = e.dtype(b);
  if (adds_up && (dtype == DType::kBFloat16 || dtype == DType::kFloat16)) {
    attributes.set("result", std::string("f32"));
  }
  return e.apply(Op::kMatMul, {matrix(operands[0], part), matrix(b, lines)}, attributes);
}

}  // namespace

size_t row_dims(const Shape& shape, int64_t rows) {
  int64_t product = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    product *= shape[d];
    if (product == rows) return d + 1;
    if (product > rows) break;
  }
  return 0;
}

Shape shape_of_part(const Shape& shape, int64_t rows, int64_t part) {
  const size_t dims = row_dims(shape, rows);
  SGTC_CHECK(dims > 0, "no rows in " + to_string(shape));
  Shape result = {part};
  result.insert(result.end(), shape.begin() + static_cast<Dim>(dims), shape.end());
  return result;
}

ValueId slice_rows(Expressions& e, ValueId x, int64_t rows, int64_t start, int64_t part) {
  return e.slice_axis(e.reshape(x, shape_of_part(e.shape(x), rows, rows)), 0, start, part);
}

std::optional<RowForm> row_form(const Graph& graph, const Node& node, int64_t rows) {
  return RowFormFinder(graph, node, rows).run();
}

ValueId append_part(Expressions& e, const Graph& source, const Node& node, const RowForm& form,
                    int64_t rows, int64_t part, std::vector<ValueId> operands) {
  const Shape& whole = source.shape(node.results[0]);
  const Shape result = form.adds_up ? whole : shape_of_part(whole, rows, part);
  if (node.op == Op::kMatMul) {
    return e.reshape(append_product(e, node, form.adds_up, part, operands), result);
  }
  const size_t first = form.by_rows.empty() || form.by_rows[0] ? 0 : 1;
  const bool reduces = info(node.op).kind == OpKind::kReduction;
  const Shape& rowed = reduces ? source.shape(node.operands[first]) : whole;
  const size_t dims = row_dims(rowed, rows);
  for (size_t i = 0; i < operands.size(); ++i) {
    // A whole operand loses the dimensions of size 1 in which it was stretched over the rows.
    const Shape shape = e.shape(operands[i]);
    const size_t outer = whole.size() - std::min(whole.size(), shape.size());
    if (form.by_rows[i] || outer >= dims || shape.empty()) continue;
    operands[i] =
        e.reshape(operands[i], Shape(shape.begin() + static_cast<Dim>(dims - outer), shape.end()));
  }
  const Shape operand = e.shape(operands[first]);
  Attributes attributes = PartAttributes(node, dims).run(node.op, operand, result);
  return e.reshape(e.apply(node.op, std::move(operands), std::move(attributes)), result);
}

}  // namespace sgtc
