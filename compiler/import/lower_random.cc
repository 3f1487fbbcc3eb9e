// Dropout and random tensors. Every node draws from a stream of its own, its node id, whatever
// the seed attribute says: two nodes with the same seed differ.
#include "import/checks.h"
#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

ValueId random_values(Lowering& n, Op op, const Shape& shape) {
  Graph& graph = n.graph();
  const int64_t id = graph.next_id();
  graph.context().id = id;
  const ValueId seed = graph.control("seed"), step = graph.control("step");
  const ValueId values = n.add(op, {seed, step}, {{"shape", shape}, {"stream", id}});
  graph.context().id = 0;
  return values;
}

double dropout_ratio(Lowering& n) {
  double ratio = n.real("ratio", 0.5);
  if (n.since() >= 12) ratio = n.has_input(1) ? n.real_input(1, "the dropout ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) {
    throw Error("the dropout ratio must be at least 0 and below 1, found " + std::to_string(ratio));
  }
  return ratio;
}

// Before opset 12 a Dropout node is one of inference.
bool drops(Lowering& n) {
  if (!n.state().training || n.since() < 12 || !n.has_input(2)) return false;
  return n.integer_input(2, "training_mode of Dropout") != 0;
}

ValueIds lower_dropout(Lowering& n) {
  const ValueId x = n.input(0);
  const bool active = drops(n);
  const double ratio = active ? dropout_ratio(n) : 0;
  if (n.state().training && !active) n.state().faults.idle_dropouts.push_back(n.full_name());
  if (ratio == 0) {
    if (!n.wants_output(1)) return {x};
    return {x, n.broadcast(n.scalar(DType::kBool, 1), n.shape(x))};
  }
  const ValueId uniform = random_values(n, Op::kRandomUniform, n.shape(x));
  const ValueId kept = n.add(Op::kGreaterEqual, {uniform, n.scalar(DType::kFloat32, ratio)});
  const ValueId scaled = n.mul_scalar(x, 1 / (1 - ratio));
  return {n.where(kept, scaled, n.scalar(n.dtype(x), 0)), kept};
}

DType random_type(Lowering& n, DType otherwise) {
  if (!n.has_attribute("dtype")) return otherwise;
  const auto code = static_cast<int32_t>(n.integer("dtype", 0));
  const std::optional<DType> dtype = dtype_from_onnx(code);
  if (!dtype) throw Error("attribute \"dtype\": " + onnx_dtype_name(code) + " is not supported");
  return *dtype;
}

template <bool like>
ValueIds lower_random_normal(Lowering& n) {
  const Shape shape = like ? n.input_shape(0) : n.integers("shape");
  const DType dtype = random_type(n, like ? n.input_type(0).dtype : DType::kFloat32);
  const ValueId unit = n.cast(random_values(n, Op::kRandomNormal, shape), dtype);
  return {n.add_scalar(n.mul_scalar(unit, n.real("scale", 1)), n.real("mean", 0))};
}

template <bool like>
ValueIds lower_random_uniform(Lowering& n) {
  const Shape shape = like ? n.input_shape(0) : n.integers("shape");
  const DType dtype = random_type(n, like ? n.input_type(0).dtype : DType::kFloat32);
  const double low = n.real("low", 0), high = n.real("high", 1);
  const ValueId unit = n.cast(random_values(n, Op::kRandomUniform, shape), dtype);
  return {n.add_scalar(n.mul_scalar(unit, high - low), low)};
}

ValueIds lower_bernoulli(Lowering& n) {
  const ValueId p = n.input(0);
  const ValueId uniform = random_values(n, Op::kRandomUniform, n.shape(p));
  const ValueId hit = n.add(Op::kLess, {uniform, n.cast(p, DType::kFloat32)});
  return {n.cast(hit, random_type(n, n.dtype(p)))};
}

// Draws by the inverse of the distribution function: how many of its values a uniform number
// exceeds.
ValueIds lower_multinomial(Lowering& n) {
  const ValueId scores = n.input(0);
  const Shape shape = n.shape(scores);
  const int64_t draws = checked_factor(n.integer("sample_size", 1), 1, "attribute \"sample_size\"");
  if (shape.size() != 2 || shape[1] == 0) {
    throw Error("expected logarithms [N, classes], found " + to_string(shape));
  }
  const DType dtype = random_type(n, DType::kInt32);
  const ValueId p = n.add(Op::kSoftmax, {n.cast(scores, DType::kFloat32)}, {{"axis", int64_t{1}}});
  const ValueId sums = n.add(
      Op::kCumSum, {p}, {{"axis", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}});
  const ValueId uniform = random_values(n, Op::kRandomUniform, {shape[0], draws, 1});
  const ValueId passed = n.add(Op::kLessEqual, {n.unsqueeze(sums, {1}), uniform});
  const ValueId count = n.reduce(Op::kReduceSum, n.cast(passed, dtype), {2});
  // Rounding may leave the sum of all below the number.
  const ValueId last = n.scalar(dtype, static_cast<double>(shape[1] - 1));
  return {n.add(Op::kMin, {n.squeeze(count, {2}), last})};
}

const std::vector<Rule> kRules = {
    {"", "Dropout", {7, 10, 12, 13, 22}, lower_dropout},
    {"", "RandomNormal", {1, 22}, lower_random_normal<false>},
    {"", "RandomNormalLike", {1, 22}, lower_random_normal<true>},
    {"", "RandomUniform", {1, 22}, lower_random_uniform<false>},
    {"", "RandomUniformLike", {1, 22}, lower_random_uniform<true>},
    {"", "Bernoulli", {15, 22}, lower_bernoulli},
    {"", "Multinomial", {7, 22}, lower_multinomial},
};

}  // namespace

std::span<const Rule> random_rules() { return kRules; }

}  // namespace sgtc
