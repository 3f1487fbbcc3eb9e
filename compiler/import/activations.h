// Activation functions that several rules use.
#pragma once

#include "import/emitter.h"

namespace sgtc {

/// max(x, 0) with gradient 0 at 0.
ValueId emit_relu(Emitter& e, ValueId x);
/// x/2·(1 + erf(x/√2)).
ValueId emit_gelu(Emitter& e, ValueId x);
/// x/2·(1 + tanh(√(2/π)·(x + 0.044715 x³))).
ValueId emit_gelu_tanh(Emitter& e, ValueId x);

}  // namespace sgtc
