// Parts of p-norms that several rules use.
#pragma once

#include "import/emitter.h"

namespace sgtc {

/// |x|^p.
ValueId emit_powers(Emitter& e, ValueId x, double p);
/// sum^(1/p) of a sum that is not negative. Where it is 0 the gradient is taken as 0, since that of
/// the root is infinite and that of the powers 0.
ValueId emit_root(Emitter& e, ValueId sum, double p);

}  // namespace sgtc
