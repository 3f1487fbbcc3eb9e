// Scatters: data with updates combined into the positions that indices name. Updates of equal
// positions are combined in the order of the indices; blocks divide the columns, which every index
// addresses alike, so no two blocks meet. A bad index is reported and its updates are left out.
#include "element.h"
#include "scatter/combined.h"
#include "shapes.h"
#include "status.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// Copies columns begin … end of `rows` rows of `width` elements, unless both are the same memory.
template <typename T>
SGTC_INLINE void copy_columns(T* to, const T* from, int64_t rows, int64_t width, int64_t begin,
                              int64_t end) {
  if (to == from) return;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = begin; i < end; ++i) to[row * width + i] = from[row * width + i];
  }
}

template <typename T>
SGTC_INLINE void scatter_add(const ScatterAddShape* shape, void* const* tensors, int64_t begin,
                             int64_t end) {
  const ScatterAddShape& s = *shape;
  const int64_t chunks = ceil_divide(s.inner, s.columns_per_block);
  const int64_t last = minimum(end, s.outer * chunks);
  for (int64_t block = begin; block < last; ++block) {
    const int64_t outer = block / chunks;
    const int64_t first = block % chunks * s.columns_per_block;
    const int64_t limit = minimum(s.inner, first + s.columns_per_block);
    const T* data = static_cast<const T*>(tensors[0]) + outer * s.size * s.inner;
    const T* updates = static_cast<const T*>(tensors[2]) + outer * s.indices * s.inner;
    T* result = static_cast<T*>(tensors[3]) + outer * s.size * s.inner;
    copy_columns(result, data, s.size, s.inner, first, limit);
    for (int64_t i = 0; i < s.indices; ++i) {
      const int64_t row = checked_index(read_index(tensors[1], i, s.index_bytes), s.size,
                                        tensors[4], s.checked_node);
      if (row < 0) continue;
      T* to = result + row * s.inner;
      const T* from = updates + i * s.inner;
      for (int64_t c = first; c < limit; ++c) {
        to[c] = combined(to[c], from[c], ScatterReduction::kAdd);
      }
    }
  }
}

template <typename T>
SGTC_INLINE void scatter_elements(const ScatterElementsShape* shape, void* const* tensors,
                                  int64_t begin, int64_t end) {
  const ScatterElementsShape& s = *shape;
  if (begin >= end) return;
  const T* updates = static_cast<const T*>(tensors[2]);
  T* result = static_cast<T*>(tensors[3]);
  int64_t elements = 1, count = 1;
  for (int64_t d = 0; d < s.rank; ++d) {
    elements *= s.data[d];
    count *= s.indices[d];
  }
  copy_columns(result, static_cast<const T*>(tensors[0]), 1, elements, 0, elements);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = checked_index(read_index(tensors[1], i, s.index_bytes), s.data[s.axis],
                                        tensors[4], s.checked_node);
    if (index < 0) continue;
    int64_t rest = i, stride = 1, to = 0;
    for (int64_t d = s.rank - 1; d >= 0; --d) {
      to += (d == s.axis ? index : rest % s.indices[d]) * stride;
      rest /= s.indices[d];
      stride *= s.data[d];
    }
    result[to] = combined(result[to], updates[i], s.reduction);
  }
}

template <typename T>
SGTC_INLINE void scatter_nd(const ScatterNdShape* shape, void* const* tensors, int64_t begin,
                            int64_t end) {
  const ScatterNdShape& s = *shape;
  const T* updates = static_cast<const T*>(tensors[2]);
  T* result = static_cast<T*>(tensors[3]);
  const int64_t first = minimum(s.slice, begin * s.columns_per_block);
  const int64_t limit = minimum(s.slice, end * s.columns_per_block);
  if (s.elements == 0 || first == limit) return;
  copy_columns(result, static_cast<const T*>(tensors[0]), s.elements / s.slice, s.slice, first,
               limit);
  for (int64_t t = 0; t < s.tuples; ++t) {
    int64_t to = 0;
    bool valid = true;
    for (int64_t d = 0; d < s.depth; ++d) {
      const int64_t index = checked_index(read_index(tensors[1], t * s.depth + d, s.index_bytes),
                                          s.extents[d], tensors[4], s.checked_node);
      valid = valid && index >= 0;
      to += index * s.strides[d];
    }
    if (!valid) continue;
    for (int64_t c = first; c < limit; ++c) {
      result[to + c] = combined(result[to + c], updates[t * s.slice + c], s.reduction);
    }
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_SCATTER(entry, shape_type, name, type)                                            \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::shape_type* shape, void* const*, \
                                         void* const* tensors, int64_t begin, int64_t end) {   \
    sgtc::kernels::entry<type>(shape, tensors, begin, end);                                    \
  }
#define SGTC_SCATTERS(name, type)                                  \
  SGTC_SCATTER(scatter_add, ScatterAddShape, name, type)           \
  SGTC_SCATTER(scatter_elements, ScatterElementsShape, name, type) \
  SGTC_SCATTER(scatter_nd, ScatterNdShape, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_SCATTERS)

SGTC_KERNELS_END
