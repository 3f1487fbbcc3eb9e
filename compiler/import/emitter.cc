#include "import/emitter.h"

#include <algorithm>
#include <numeric>

#include "ir/interpret.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

bool has_effect(Op op) {
  const OpKind kind = info(op).kind;
  return kind == OpKind::kRandom || kind == OpKind::kMicroBatch;
}

}  // namespace

ValueIds Emitter::add_node(Op op, ValueIds operands, Attributes attributes) {
  if (folds(op, operands, attributes)) return fold(op, operands, attributes);
  check_room();
  std::vector<std::string> names(static_cast<size_t>(info(op).results));
  for (std::string& name : names) name = fresh_name();
  return graph_.add_named_node(op, std::move(operands), std::move(attributes), names);
}

void Emitter::check_room() const {
  if (std::ssize(graph_.values) < most_tensors_) return;
  throw TooManyTensors("the graph has more than " + std::to_string(most_tensors_) +
                       " tensors, those of opened functions and unrolled loops among them; give "
                       "loops fewer iterations, or raise the limit with --max-tensors");
}

void Emitter::set_result_name(const std::string& name) {
  result_name_ = name;
  next_suffix_ = 0;
}

// The result name itself first, then with suffixes. These are taken one after the other, so that a
// free one is found by bisection: iterations and calls may give thousands the same result name.
std::string Emitter::fresh_name() {
  const auto name = [this](int64_t suffix) {
    return suffix == 0 ? result_name_ : result_name_ + "." + std::to_string(suffix);
  };
  const auto is_taken = [&](int64_t suffix) {
    return (reserved_ && reserved_->count(name(suffix)) != 0) || graph_.find(name(suffix)) != kNone;
  };
  int64_t free = next_suffix_;
  if (is_taken(free)) {
    int64_t taken = free, step = 1;
    for (; is_taken(taken + step); step *= 2) taken += step;
    for (free = taken + step; free - taken > 1;) {
      const int64_t middle = taken + (free - taken) / 2;
      (is_taken(middle) ? taken : free) = middle;
    }
  }
  next_suffix_ = free + 1;
  return name(free);
}

ValueId Emitter::add(Op op, ValueIds operands, Attributes attributes) {
  return add_node(op, std::move(operands), std::move(attributes)).front();
}

bool Emitter::folds(Op op, const ValueIds& operands, const Attributes& attributes) const {
  if (has_effect(op)) return false;
  OperandTypes types;
  int64_t given = 0;
  for (ValueId id : operands) {
    if (graph_.value(id).kind != ValueKind::kConstant) return false;
    types.push_back(&graph_.type(id));
    given += element_count(graph_.shape(id));
  }
  const std::vector<TensorType> results = infer_types(op, types, attributes);
  return std::all_of(results.begin(), results.end(), [given](const TensorType& type) {
    const int64_t count = element_count(type.shape);
    return count <= kFoldLimit && (count <= kFoldGrowthLimit || count <= given);
  });
}

ValueIds Emitter::fold(Op op, const ValueIds& operands, const Attributes& attributes) {
  std::vector<LiteralPtr> literals;
  for (ValueId id : operands) literals.push_back(graph_.value(id).literal);
  ValueIds constants;
  for (const LiteralPtr& literal : evaluate(op, literals, attributes)) {
    constants.push_back(constant(literal));
  }
  return constants;
}

LiteralPtr Emitter::literal(ValueId id) const {
  const Value& value = graph_.value(id);
  return value.kind == ValueKind::kConstant ? value.literal : nullptr;
}

ValueId Emitter::constant(LiteralPtr literal) {
  check_room();
  return graph_.add_constant(std::move(literal), fresh_name());
}

ValueId Emitter::scalar(DType dtype, double value) {
  return constant(scalar_literal(dtype, value));
}

ValueId Emitter::constant_integers(const std::vector<int64_t>& values) {
  return constant(make_literal(DType::kInt64, {static_cast<int64_t>(values.size())},
                               std::span<const int64_t>(values)));
}

ValueId Emitter::reshape(ValueId x, const Shape& shape) {
  if (graph_.shape(x) == shape) return x;
  return add(Op::kReshape, {x}, {{"shape", shape}});
}

ValueId Emitter::transpose(ValueId x, const std::vector<int64_t>& perm) {
  if (perm == all_axes(rank(x))) return x;
  return add(Op::kTranspose, {x}, {{"perm", perm}});
}

ValueId Emitter::broadcast(ValueId x, const Shape& shape) {
  if (graph_.shape(x) == shape) return x;
  return add(Op::kBroadcast, {x}, {{"shape", shape}});
}

ValueId Emitter::slice(ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step) {
  const size_t dims = shape(x).size();
  std::vector<int64_t> starts(dims, 0), sizes = shape(x), steps(dims, 1);
  const auto at = static_cast<size_t>(axis);
  if (start == 0 && size == sizes[at] && step == 1) return x;
  starts[at] = start;
  sizes[at] = size;
  steps[at] = step;
  return add(Op::kSlice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

ValueId Emitter::concat(const ValueIds& parts, int64_t axis) {
  if (parts.size() == 1) return parts.front();
  return add(Op::kConcat, parts, {{"axis", axis}});
}

ValueId Emitter::cast(ValueId x, DType to) {
  if (dtype(x) == to) return x;
  return add(Op::kCast, {x}, {{"to", std::string(name_of(to))}});
}

ValueId Emitter::iota(const Shape& shape, int64_t axis, DType dtype) {
  return add(Op::kIota, {},
             {{"shape", shape}, {"axis", axis}, {"dtype", std::string(name_of(dtype))}});
}

ValueId Emitter::gather(ValueId x, ValueId indices, int64_t axis) {
  return add(Op::kGather, {x, indices}, {{"axis", axis}});
}

ValueId Emitter::squeeze(ValueId x, const std::vector<int64_t>& axes) {
  Shape target;
  for (int64_t i = 0; i < rank(x); ++i) {
    const bool removed = std::binary_search(axes.begin(), axes.end(), i);
    const int64_t size = shape(x)[static_cast<size_t>(i)];
    if (removed && size != 1) {
      throw Error("dimension " + std::to_string(i) + " of " + to_string(shape(x)) +
                  " cannot be removed: expected size 1, found " + std::to_string(size));
    }
    if (!removed) target.push_back(size);
  }
  return reshape(x, target);
}

ValueId Emitter::unsqueeze(ValueId x, const std::vector<int64_t>& axes) {
  Shape target = shape(x);
  for (int64_t axis : axes) target.insert(target.begin() + axis, 1);
  return reshape(x, target);
}

ValueId Emitter::where(ValueId condition, ValueId a, ValueId b) {
  return add(Op::kWhere, {condition, a, b});
}

ValueId Emitter::reduce(Op op, ValueId x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : add(op, {x}, {{"axes", axes}});
}

ValueId Emitter::mean(ValueId x, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape(x)[static_cast<size_t>(axis)];
  return div(reduce(Op::kReduceSum, x, axes), scalar(dtype(x), static_cast<double>(count)));
}

ValueId Emitter::matmul(ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  return add(Op::kMatMul, {a, b},
             {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}});
}

int64_t normalized_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    throw Error("axis " + std::to_string(axis) + " is out of range for a tensor of rank " +
                std::to_string(rank));
  }
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normalized_axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) result.push_back(normalized_axis(axis, rank));
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) {
    throw Error("axis " + std::to_string(*twice) + " is named twice");
  }
  return result;
}

}  // namespace sgtc
