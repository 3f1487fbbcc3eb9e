// Normal numbers from uniform ones; philox.h defines the transformation.
#pragma once

#include "math/single_wide.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// r cos(2 pi v) with r = sqrt(-2 log u) where `is_second` is 0, r sin(2 pi v) where it is 1.
template <typename V>
SGTC_INLINE V normal_of_pair(V u, V v, Unsigned<DoubleOf<V>> is_second) {
  using D = DoubleOf<V>;
  const D quarters = widen(v) * 4;
  const Rounded<D> turns = round_to_integer(quarters);
  const Reduced<D> angle = {(quarters - turns.value) * kPiHalfF64High, D{}, turns.bits};
  const D wave = sin_of_quadrant(angle, turns.bits + 1 - is_second);
  const D radius = square_root(log_double(widen(u)) * -2);
  return convert<V>(radius * wave);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
