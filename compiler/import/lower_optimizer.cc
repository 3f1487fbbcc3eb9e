// ONNX's optimizers (ai.onnx.preview.training). They are not PyTorch's: epsilon is added to the
// root before any correction, a count T of 0 corrects nothing, and the first step of a momentum
// takes the whole gradient.
//
// Inputs are R (learning rate), T (updates before this one), then all parameters, all gradients and
// all moments; outputs are all new parameters and all new moments.
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int kFirstTensor = 2;

// The inputs of one parameter.
struct Tensors {
  ValueId x = kNone, gradient = kNone;
  ValueIds moments;
};

ValueId scalar_input(Lowering& n, int index, const std::string& what) {
  const ValueId value = n.input(index);
  if (element_count(n.shape(value)) != 1) {
    throw Error(what + ": expected one number, found shape " + to_string(n.shape(value)));
  }
  return n.reshape(value, {});
}

// Splits the inputs, of which each parameter has two and `moments` more.
std::vector<Tensors> tensors_of(Lowering& n, int moments) {
  const int lists = 2 + moments;
  const int count = (n.input_count() - kFirstTensor) / lists;
  if (count < 1 || n.input_count() != kFirstTensor + count * lists) {
    throw Error("expected R, T and " + std::to_string(lists) +
                " inputs for each parameter, found " + std::to_string(n.input_count()) + " inputs");
  }
  std::vector<Tensors> result;
  for (int i = 0; i < count; ++i) {
    const auto input = [&](int list) { return n.input(kFirstTensor + list * count + i); };
    Tensors tensors{input(0), input(1), {}};
    for (int k = 0; k < moments; ++k) tensors.moments.push_back(input(2 + k));
    for (int list = 1; list < lists; ++list) {
      if (n.graph().type(input(list)) != n.graph().type(tensors.x)) {
        throw Error("gradient and moments: expected the type and shape of the parameter, " +
                    to_string(n.shape(tensors.x)) + ", found " + to_string(n.shape(input(list))));
      }
    }
    result.push_back(tensors);
  }
  return result;
}

// G + norm_coefficient X.
ValueId regularized(Lowering& n, const Tensors& tensors) {
  const double norm = n.real("norm_coefficient", 0);
  if (norm == 0) return tensors.gradient;
  return n.add(n.mul_scalar(tensors.x, norm), tensors.gradient);
}

// All new parameters, then all first moments, then all second ones.
ValueIds in_order(const std::vector<ValueIds>& updated) {
  ValueIds outputs;
  for (size_t k = 0; k < updated.front().size(); ++k) {
    for (const ValueIds& values : updated) outputs.push_back(values[k]);
  }
  return outputs;
}

ValueId is_later(Lowering& n) {
  const ValueId count = scalar_input(n, 1, "T");
  return n.add(Op::kGreater, {count, n.scalar(n.dtype(count), 0)});
}

// 1 - base^T in double: float32 would lose what a base near 1 leaves.
ValueId correction(Lowering& n, double base) {
  const ValueId count = n.cast(scalar_input(n, 1, "T"), DType::kFloat64);
  const ValueId power = n.add(Op::kPow, {n.scalar(DType::kFloat64, base), count});
  return n.sub(n.scalar(DType::kFloat64, 1), power);
}

// R sqrt(1 - beta^T) / (1 - alpha^T), or R at T = 0; in double.
ValueId adam_rate(Lowering& n, double alpha, double beta) {
  const ValueId rate = n.cast(scalar_input(n, 0, "R"), DType::kFloat64);
  const ValueId root = n.add(Op::kSqrt, {correction(n, beta)});
  return n.where(is_later(n), n.div(n.mul(rate, root), correction(n, alpha)), rate);
}

// v scaled by `decay` plus x scaled by `share`.
ValueId blend(Lowering& n, ValueId v, double decay, ValueId x, double share) {
  return n.add(n.mul_scalar(v, decay), n.mul_scalar(x, share));
}

ValueIds lower_adam(Lowering& n) {
  const double alpha = n.real("alpha", 0.9f), beta = n.real("beta", 0.999f);
  const double epsilon = n.real("epsilon", 1e-6f), post = n.real("norm_coefficient_post", 0);
  const ValueId rate = adam_rate(n, alpha, beta);
  std::vector<ValueIds> updated;
  for (const Tensors& tensors : tensors_of(n, 2)) {
    const ValueId g = regularized(n, tensors);
    const ValueId v = blend(n, tensors.moments[0], alpha, g, 1 - alpha);
    const ValueId h = blend(n, tensors.moments[1], beta, n.mul(g, g), 1 - beta);
    const ValueId root = n.add_scalar(n.add(Op::kSqrt, {h}), epsilon);
    const ValueId scaled = n.mul(n.cast(rate, n.dtype(v)), v);
    const ValueId stepped = n.sub(tensors.x, n.div(scaled, root));
    updated.push_back({post == 0 ? stepped : n.mul_scalar(stepped, 1 - post), v, h});
  }
  return in_order(updated);
}

ValueIds lower_adagrad(Lowering& n) {
  const double decay = n.real("decay_factor", 0), epsilon = n.real("epsilon", 1e-6f);
  const ValueId count = n.cast(scalar_input(n, 1, "T"), DType::kFloat64);
  const ValueId rate = n.div(n.cast(scalar_input(n, 0, "R"), DType::kFloat64),
                             n.add_scalar(n.mul_scalar(count, decay), 1));
  std::vector<ValueIds> updated;
  for (const Tensors& tensors : tensors_of(n, 1)) {
    const ValueId g = regularized(n, tensors);
    const ValueId h = n.add(tensors.moments[0], n.mul(g, g));
    const ValueId root = n.add_scalar(n.add(Op::kSqrt, {h}), epsilon);
    const ValueId step = n.div(n.mul(n.cast(rate, n.dtype(g)), g), root);
    updated.push_back({n.sub(tensors.x, step), h});
  }
  return in_order(updated);
}

ValueIds lower_momentum(Lowering& n) {
  const std::string mode = n.text("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    throw Error("attribute \"mode\": expected standard or nesterov, found \"" + mode + "\"");
  }
  for (const char* name : {"alpha", "beta", "norm_coefficient"}) {
    if (!n.has_attribute(name)) throw Error("attribute \"" + std::string(name) + "\" is missing");
  }
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0);
  const ValueId rate = scalar_input(n, 0, "R");
  const ValueId later = is_later(n);
  std::vector<ValueIds> updated;
  for (const Tensors& tensors : tensors_of(n, 1)) {
    const ValueId g = regularized(n, tensors);
    const DType dtype = n.dtype(g);
    const ValueId share = n.where(later, n.scalar(dtype, beta), n.scalar(dtype, 1));
    const ValueId v = n.add(n.mul_scalar(tensors.moments[0], alpha), n.mul(share, g));
    const ValueId direction = mode == "standard" ? v : n.add(g, n.mul_scalar(v, alpha));
    updated.push_back({n.sub(tensors.x, n.mul(n.cast(rate, dtype), direction)), v});
  }
  return in_order(updated);
}

const std::vector<Rule> kRules = {
    {"ai.onnx.preview.training", "Adam", {1}, lower_adam},
    {"ai.onnx.preview.training", "Adagrad", {1}, lower_adagrad},
    {"ai.onnx.preview.training", "Momentum", {1}, lower_momentum},
};

}  // namespace

std::span<const Rule> optimizer_rules() { return kRules; }

}  // namespace sgtc
