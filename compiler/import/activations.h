// Activation functions that several rules use.
#pragma once

#include "import/emitter.h"

namespace sgtc {

/// The alpha of ONNX Runtime's QuickGelu where the file gives none.
inline constexpr double kQuickGeluAlpha = 1.702f;

/// max(x, 0) with gradient 0 at 0.
ValueId emit_relu(Emitter& e, ValueId x);
/// x/2·(1 + erf(x/√2)).
ValueId emit_gelu(Emitter& e, ValueId x);
/// x/2·(1 + tanh(√(2/π)·(x + 0.044715 x³))).
ValueId emit_gelu_tanh(Emitter& e, ValueId x);
/// alpha·(exp(x) - 1) below 0, x above.
ValueId emit_elu(Emitter& e, ValueId x, double alpha);
/// alpha·x below 0, x above.
ValueId emit_leaky_relu(Emitter& e, ValueId x, double alpha);
/// x above alpha, else 0.
ValueId emit_thresholded_relu(Emitter& e, ValueId x, double alpha);
/// alpha·x + beta, limited to [0, 1].
ValueId emit_hard_sigmoid(Emitter& e, ValueId x, double alpha, double beta);
/// x·sigmoid(alpha·x).
ValueId emit_swish(Emitter& e, ValueId x, double alpha);
/// x/(1 + |x|).
ValueId emit_softsign(Emitter& e, ValueId x);

}  // namespace sgtc
