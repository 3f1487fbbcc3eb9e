// Normalizations over the elements of a sample.
//
// Statistics of 16-bit floats are computed in float32 (stash_type), so that a variance beyond
// 65504 stays finite.
#include "import/checks.h"
#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// The type that statistics are computed in.
DType stash_type(Lowering& n, DType input) {
  if (input == DType::kFloat64) return input;
  const auto code = static_cast<int32_t>(n.integer("stash_type", onnx::TensorProto::FLOAT));
  const std::optional<DType> dtype = dtype_from_onnx(code);
  if (!dtype || !is_float(*dtype)) {
    throw Error("attribute \"stash_type\": expected a float type, found " + onnx_dtype_name(code));
  }
  return *dtype;
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes = all_axes(rank);
  axes.erase(axes.begin(), axes.begin() + first);
  return axes;
}

Attributes normalize_attributes(Lowering& n, const std::vector<int64_t>& axes) {
  return {{"axes", axes}, {"epsilon", n.real("epsilon", 1e-5f)}};
}

void need_broadcast(Lowering& n, ValueId part, ValueId whole, const std::string& what) {
  Shape both;
  if (broadcast_shapes(n.shape(part), n.shape(whole), &both) && both == n.shape(whole)) return;
  throw Error(what + ": expected a shape that broadcasts to " + to_string(n.shape(whole)) +
              ", found " + to_string(n.shape(part)));
}

ValueId scaled(Lowering& n, ValueId y) {
  if (n.has_input(1)) {
    need_broadcast(n, n.input(1), y, "scale");
    y = n.mul(y, n.input(1));
  }
  if (n.has_input(2)) {
    need_broadcast(n, n.input(2), y, "bias");
    y = n.add(y, n.input(2));
  }
  return y;
}

ValueId reciprocal_deviation(Lowering& n, ValueId variance) {
  const ValueId shifted = n.add_scalar(variance, n.real("epsilon", 1e-5f));
  return n.add(Op::kRsqrt, {shifted});
}

// Scale, bias and result may share a type that is not the input's.
DType result_type(Lowering& n) { return n.input_type(n.has_input(1) ? 1 : 0).dtype; }

ValueIds lower_layer_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  const int64_t first = normalized_axis(n.integer("axis", -1), n.rank(x));
  const ValueId stashed = n.cast(x, stash_type(n, n.dtype(x)));
  const ValueIds parts =
      n.add_node(Op::kNormalize, {stashed}, normalize_attributes(n, axes_from(first, n.rank(x))));
  ValueIds outputs{scaled(n, n.cast(parts[0], result_type(n)))};
  if (n.wants_output(1) || n.wants_output(2)) {
    outputs.push_back(parts[1]);
    outputs.push_back(reciprocal_deviation(n, parts[2]));
  }
  return outputs;
}

ValueIds lower_rms_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  const int64_t first = normalized_axis(n.integer("axis", -1), n.rank(x));
  const ValueId stashed = n.cast(x, stash_type(n, n.dtype(x)));
  const ValueId square = n.mean(n.mul(stashed, stashed), axes_from(first, n.rank(x)));
  const ValueId inverse = reciprocal_deviation(n, square);
  return {scaled(n, n.cast(n.mul(stashed, inverse), result_type(n))), inverse};
}

// Per-channel (or per-group) scale and bias as [C, 1, …] to the right of the batch dimension.
ValueId per_channel(Lowering& n, int index, int64_t count, size_t spatial) {
  const ValueId value = n.input(index);
  if (n.shape(value) != Shape{count}) {
    throw Error("input " + std::to_string(index) + ": expected shape [" + std::to_string(count) +
                "], found " + to_string(n.shape(value)));
  }
  Shape shape(spatial + 1, 1);
  shape[0] = count;
  return n.reshape(value, shape);
}

ValueIds lower_group_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  const int64_t groups = n.required_integer("num_groups");
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    throw Error("expected [N, C, …] with C a multiple of num_groups " + std::to_string(groups) +
                ", found " + to_string(shape));
  }
  const bool scale_by_group = n.since() < 21;
  Shape grouped{shape[0], groups, shape[1] / groups};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  const ValueId stashed = n.reshape(n.cast(x, stash_type(n, n.dtype(x))), grouped);
  const ValueIds parts =
      n.add_node(Op::kNormalize, {stashed},
                 normalize_attributes(n, axes_from(2, static_cast<int64_t>(grouped.size()))));
  ValueId y = n.cast(parts[0], n.dtype(x));
  if (!scale_by_group) y = n.reshape(y, shape);
  const int64_t count = scale_by_group ? groups : shape[1];
  const size_t spatial = n.shape(y).size() - 2;
  y = n.mul(y, per_channel(n, 1, count, spatial));
  y = n.add(y, per_channel(n, 2, count, spatial));
  return {n.reshape(y, shape)};
}

ValueIds lower_instance_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  if (shape.size() < 3) throw Error("expected [N, C, …], found " + to_string(shape));
  const ValueId stashed = n.cast(x, stash_type(n, n.dtype(x)));
  const ValueIds parts =
      n.add_node(Op::kNormalize, {stashed}, normalize_attributes(n, axes_from(2, n.rank(x))));
  const ValueId y =
      n.mul(n.cast(parts[0], n.dtype(x)), per_channel(n, 1, shape[1], shape.size() - 2));
  return {n.add(y, per_channel(n, 2, shape[1], shape.size() - 2))};
}

// x / |x| along an axis; a vector of norm 0 stays 0 and has the gradient 0.
ValueIds lower_lp_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  const int64_t axis = normalized_axis(n.integer("axis", -1), n.rank(x));
  const int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2) throw Error("attribute \"p\": expected 1 or 2, found " + std::to_string(p));
  const ValueId terms = p == 1 ? n.add(Op::kAbs, {x}) : n.mul(x, x);
  const ValueId sum = n.reduce(Op::kReduceSum, terms, {axis});
  const ValueId zero = n.add(Op::kEqual, {sum, n.scalar(n.dtype(x), 0)});
  const ValueId safe = n.where(zero, n.scalar(n.dtype(x), 1), sum);
  const ValueId y = n.div(x, p == 1 ? safe : n.add(Op::kSqrt, {safe}));
  return {n.where(zero, n.scalar(n.dtype(x), 0), y)};
}

// x / (bias + alpha/size · Σ x²)^beta, the sum over `size` neighbouring channels.
ValueIds lower_local_response_normalization(Lowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) < 3) throw Error("expected [N, C, …], found " + to_string(n.shape(x)));
  const int64_t size = checked_factor(n.required_integer("size"), 1, "attribute \"size\"");
  const DType dtype = n.dtype(x);
  std::vector<int64_t> low(n.shape(x).size(), 0), high = low;
  low[1] = (size - 1) / 2;
  high[1] = size / 2;
  const ValueId padded =
      n.add(Op::kPad, {n.mul(x, x), n.scalar(dtype, 0)}, {{"low", low}, {"high", high}});
  ValueId sum = n.slice(padded, 1, 0, n.shape(x)[1]);
  for (int64_t i = 1; i < size; ++i) sum = n.add(sum, n.slice(padded, 1, i, n.shape(x)[1]));
  const double alpha = n.real("alpha", 0.0001f) / static_cast<double>(size);
  const ValueId base = n.add_scalar(n.mul_scalar(sum, alpha), n.real("bias", 1));
  return {n.div(x, n.add(Op::kPow, {base, n.scalar(dtype, n.real("beta", 0.75))}))};
}

const std::vector<Rule> kRules = {
    {"", "LayerNormalization", {17}, lower_layer_normalization},
    // Exporters of older opsets write it before it was standard, with the same meaning.
    {"", "LayerNormalization", {1}, lower_layer_normalization},
    {"", "RMSNormalization", {23}, lower_rms_normalization},
    // ONNX Runtime's name for it, with the reciprocal deviation as second output.
    {"", "SimplifiedLayerNormalization", {1}, lower_rms_normalization},
    {"", "GroupNormalization", {18, 21}, lower_group_normalization},
    {"", "InstanceNormalization", {6, 22}, lower_instance_normalization},
    {"", "LpNormalization", {1, 22}, lower_lp_normalization},
    {"", "LRN", {1, 13}, lower_local_response_normalization},
};

}  // namespace

std::span<const Rule> normalization_rules() { return kRules; }

}  // namespace sgtc
