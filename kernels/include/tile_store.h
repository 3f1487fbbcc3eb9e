// Where contractions put their results.
#pragma once

#include "element.h"
#include "vector.h"

SGTC_KERNELS_BEGIN

/// Defined anew for each kernel by the code generator: stores elements (batch, row, column …
/// column + lanes - 1) of the kernel's results, after whatever elementwise operators were fused.
SGTC_EXPORT void sgtc_tile_store(void* const* args, int64_t batch, int64_t row, int64_t column,
                                 sgtc::kernels::V16f values, int64_t lanes);

/// Defined beside it: asks for what the operators fused to elements (batch, row, column …
/// column + 15) will read from memory. Called some microseconds before the elements are stored, so
/// that their operands, of which each row lies in a page of its own, have come by then.
SGTC_EXPORT void sgtc_tile_prefetch(void* const* args, int64_t batch, int64_t row, int64_t column);

namespace sgtc::kernels {

/// Through the visitor for types that are computed in single precision, else directly to
/// result[(batch * rows + row) * columns + column].
template <typename T, typename V>
SGTC_INLINE void store_result(void* const* args, T* result, int64_t rows, int64_t columns,
                              int64_t batch, int64_t row, int64_t column, V values, int64_t lanes) {
  if constexpr (__is_same(T, double)) {
    T* to = result + (batch * rows + row) * columns + column;
    for (int64_t i = 0; i < lanes; ++i) to[i] = values[i];
  } else {
    sgtc_tile_store(args, batch, row, column, values, lanes);
  }
}

/// What `store_result` will need at (batch, row, column).
template <typename T>
SGTC_INLINE void prefetch_operands(void* const* args, int64_t batch, int64_t row, int64_t column) {
  if constexpr (!__is_same(T, double)) sgtc_tile_prefetch(args, batch, row, column);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
