// Operators of ONNX Runtime's domain that appear in exported training graphs.
#include "import/activations.h"
#include "import/lowering.h"

namespace sgtc {
namespace {

ValueId input_with_bias(Lowering& n) {
  const ValueId x = n.input(0);
  return n.has_input(1) ? n.add(x, n.input(1)) : x;
}

ValueIds lower_gelu(Lowering& n) { return {emit_gelu(n, input_with_bias(n))}; }

ValueIds lower_fast_gelu(Lowering& n) { return {emit_gelu_tanh(n, input_with_bias(n))}; }

ValueIds lower_quick_gelu(Lowering& n) {
  return {emit_swish(n, n.input(0), n.real("alpha", kQuickGeluAlpha))};
}

const std::vector<Rule> kRules = {
    {"com.microsoft", "Gelu", {1}, lower_gelu},
    {"com.microsoft", "BiasGelu", {1}, lower_gelu},
    {"com.microsoft", "FastGelu", {1}, lower_fast_gelu},
    {"com.microsoft", "QuickGelu", {1}, lower_quick_gelu},
};

}  // namespace

std::span<const Rule> microsoft_rules() { return kRules; }

}  // namespace sgtc
