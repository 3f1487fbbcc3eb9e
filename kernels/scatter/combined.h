// How an update meets what is there.
#pragma once

#include "element.h"
#include "shapes.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// In the type of arithmetic.
template <typename A>
SGTC_INLINE A combined_values(A old, A update, ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::kAdd:
      return add_elements(old, update);
    case ScatterReduction::kMultiply:
      return multiply_elements(old, update);
    case ScatterReduction::kMax:
      return larger(old, update);
    case ScatterReduction::kMin:
      return smaller(old, update);
    default:
      return update;
  }
}

/// Of elements in memory: rounded each time.
template <typename T>
SGTC_INLINE T combined(T old, T update, ScatterReduction reduction) {
  if (reduction == ScatterReduction::kNone) return update;
  return narrowed<T>(combined_values(widened(old), widened(update), reduction));
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
