// Appends Graph nodes for the lowering rules and folds constants as soon as they are known.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "support/diagnostics.h"

namespace sgtc {

using ValueIds = std::vector<ValueId>;

/// A node whose operands are all constants and whose results have at most this many elements is
/// evaluated at once, so shape arithmetic disappears during import.
inline constexpr int64_t kFoldLimit = int64_t{1} << 20;
/// Beyond this size, results that are larger than their operands (iota, broadcasts, masks made by
/// comparing a row with a column) are cheaper to compute than to store.
inline constexpr int64_t kFoldGrowthLimit = 4096;

/// Tensors of an imported graph, by default: those of unrolled loops and opened functions count.
inline constexpr int64_t kMaxTensors = int64_t{1} << 22;

/// The graph has outgrown its limit. The import ends there, whatever else is wrong.
class TooManyTensors : public Error {
 public:
  using Error::Error;
};

/// Builds expressions in a graph. Axes may be negative where a method says so; reductions keep
/// the reduced dimensions, as everywhere in the Graph. Throws Error when operands do not fit.
class Emitter {
 public:
  /// `reserved`: names that no value may take, beyond those that are in the graph. A graph of
  /// `most_tensors` is full: what adds another throws TooManyTensors.
  explicit Emitter(Graph& graph, const std::set<std::string>* reserved = nullptr,
                   int64_t most_tensors = kMaxTensors)
      : graph_(graph), reserved_(reserved), most_tensors_(most_tensors) {}

  Graph& graph() { return graph_; }
  /// By value: appending to the graph moves its values.
  Shape shape(ValueId id) const { return graph_.shape(id); }
  DType dtype(ValueId id) const { return graph_.dtype(id); }
  int64_t rank(ValueId id) const { return static_cast<int64_t>(shape(id).size()); }
  /// Names of the values that are appended from here on start with `name`.
  void set_result_name(const std::string& name);

  ValueIds add_node(Op op, ValueIds operands, Attributes attributes = {});
  /// The first result of an operator.
  ValueId add(Op op, ValueIds operands, Attributes attributes = {});

  /// The elements of a constant, or null for any other value.
  LiteralPtr literal(ValueId id) const;
  ValueId constant(LiteralPtr literal);
  ValueId scalar(DType dtype, double value);
  /// A constant of int64 with shape [values.size()].
  ValueId constant_integers(const std::vector<int64_t>& values);

  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& perm);
  ValueId broadcast(ValueId x, const Shape& shape);
  /// Elements [start, start + size) of one dimension.
  ValueId slice(ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
  ValueId concat(const ValueIds& parts, int64_t axis);
  ValueId cast(ValueId x, DType to);
  ValueId iota(const Shape& shape, int64_t axis, DType dtype);
  ValueId gather(ValueId x, ValueId indices, int64_t axis);
  /// Removes (`axes` of size 1) or inserts dimensions; axes are sorted and non-negative.
  ValueId squeeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId unsqueeze(ValueId x, const std::vector<int64_t>& axes);

  ValueId neg(ValueId x) { return add(Op::kNeg, {x}); }
  ValueId exp(ValueId x) { return add(Op::kExp, {x}); }
  ValueId add(ValueId a, ValueId b) { return add(Op::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return add(Op::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return add(Op::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return add(Op::kDiv, {a, b}); }
  ValueId where(ValueId condition, ValueId a, ValueId b);
  /// With a scalar of x's dtype on the right.
  ValueId add_scalar(ValueId x, double value) { return add(x, scalar(dtype(x), value)); }
  ValueId mul_scalar(ValueId x, double value) { return mul(x, scalar(dtype(x), value)); }

  ValueId reduce(Op op, ValueId x, const std::vector<int64_t>& axes);
  /// Sum over `axes` divided by the constant number of elements, so that a later analysis of the
  /// loss finds numerator and denominator.
  ValueId mean(ValueId x, const std::vector<int64_t>& axes);
  ValueId matmul(ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false);

 private:
  void check_room() const;
  bool folds(Op op, const ValueIds& operands, const Attributes& attributes) const;
  ValueIds fold(Op op, const ValueIds& operands, const Attributes& attributes);
  std::string fresh_name();

  Graph& graph_;
  const std::set<std::string>* reserved_;
  int64_t most_tensors_;
  std::string result_name_ = "v";
  int64_t next_suffix_ = 0;
};

/// `axis` counted from the front. Throws Error when it is not in [-rank, rank).
int64_t normalized_axis(int64_t axis, int64_t rank);

/// Sorted, unique and non-negative. Throws Error for an axis out of range or named twice.
std::vector<int64_t> normalized_axes(const std::vector<int64_t>& axes, int64_t rank);

}  // namespace sgtc
