// Windows over up to three spatial dimensions: convolutions and pools.
#pragma once

#include "shapes.h"
#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

struct Position {
  int64_t d0, d1, d2;
};

SGTC_INLINE Position position_in(const int64_t (&sizes)[kSpatial], int64_t flat) {
  return {flat / (sizes[1] * sizes[2]), flat / sizes[2] % sizes[1], flat % sizes[2]};
}

SGTC_INLINE int64_t volume(const int64_t (&sizes)[kSpatial]) {
  return sizes[0] * sizes[1] * sizes[2];
}

/// The coordinate of the input that tap `k` of the window at `o` meets, in dimension `d`.
SGTC_INLINE int64_t input_coordinate(const WindowShape& w, int d, int64_t o, int64_t k) {
  return o * w.strides[d] - w.pads[d] + k * w.dilations[d];
}

SGTC_INLINE bool is_inside(int64_t coordinate, int64_t size) {
  return static_cast<uint64_t>(coordinate) < static_cast<uint64_t>(size);
}

/// The flat position of the input under tap `k` of the window at `o`; -1 in the padding.
SGTC_INLINE int64_t input_under_tap(const WindowShape& w, Position o, Position k) {
  const int64_t t0 = input_coordinate(w, 0, o.d0, k.d0);
  const int64_t t1 = input_coordinate(w, 1, o.d1, k.d1);
  const int64_t t2 = input_coordinate(w, 2, o.d2, k.d2);
  const bool inside =
      is_inside(t0, w.input[0]) && is_inside(t1, w.input[1]) && is_inside(t2, w.input[2]);
  return inside ? (t0 * w.input[1] + t1) * w.input[2] + t2 : -1;
}

/// The window whose tap `k` meets input coordinate `t` in dimension `d`; -1 if there is none.
SGTC_INLINE int64_t output_coordinate(const WindowShape& w, int d, int64_t t, int64_t k) {
  const int64_t shifted = t + w.pads[d] - k * w.dilations[d];
  if (shifted < 0 || shifted % w.strides[d] != 0) return -1;
  const int64_t o = shifted / w.strides[d];
  return o < w.output[d] ? o : -1;
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
