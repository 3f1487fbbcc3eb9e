// Windows over up to three spatial dimensions: convolutions and pools.
#pragma once

#include "shapes.h"
#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// Of an element; Integer is int64_t, or int32_t where images are known to be small enough.
template <typename Integer>
struct PositionOf {
  Integer d0, d1, d2;
};
using Position = PositionOf<int64_t>;

template <typename Integer>
SGTC_INLINE PositionOf<Integer> position_in(const int64_t (&sizes)[kSpatial], Integer flat) {
  const auto s1 = static_cast<Integer>(sizes[1]), s2 = static_cast<Integer>(sizes[2]);
  return {flat / (s1 * s2), flat / s2 % s1, flat % s2};
}

SGTC_INLINE int64_t volume(const int64_t (&sizes)[kSpatial]) {
  return sizes[0] * sizes[1] * sizes[2];
}

/// The position in an image of `sizes`, flat.
template <typename Integer>
SGTC_INLINE Integer flat_position(const int64_t (&sizes)[kSpatial], PositionOf<Integer> at) {
  return (at.d0 * static_cast<Integer>(sizes[1]) + at.d1) * static_cast<Integer>(sizes[2]) + at.d2;
}

/// The coordinate of the input that tap `k` of the window at `o` meets, in dimension `d`.
template <typename Integer>
SGTC_INLINE Integer input_coordinate(const WindowShape& w, int d, Integer o, Integer k) {
  return o * static_cast<Integer>(w.strides[d]) - static_cast<Integer>(w.pads[d]) +
         k * static_cast<Integer>(w.dilations[d]);
}

SGTC_INLINE bool is_inside(int64_t coordinate, int64_t size) {
  return static_cast<uint64_t>(coordinate) < static_cast<uint64_t>(size);
}
SGTC_INLINE bool is_inside(int32_t coordinate, int64_t size) {
  return static_cast<uint32_t>(coordinate) < static_cast<uint32_t>(size);
}

/// The flat position of the input under tap `k` of the window at `o`; -1 in the padding.
template <typename Integer>
SGTC_INLINE Integer input_under_tap(const WindowShape& w, PositionOf<Integer> o,
                                    PositionOf<Integer> k) {
  const PositionOf<Integer> t = {input_coordinate(w, 0, o.d0, k.d0),
                                 input_coordinate(w, 1, o.d1, k.d1),
                                 input_coordinate(w, 2, o.d2, k.d2)};
  const bool inside =
      is_inside(t.d0, w.input[0]) && is_inside(t.d1, w.input[1]) && is_inside(t.d2, w.input[2]);
  return inside ? flat_position(w.input, t) : -1;
}

/// The window whose tap `k` meets input coordinate `t` in dimension `d`; -1 if there is none.
template <typename Integer>
SGTC_INLINE Integer output_coordinate(const WindowShape& w, int d, Integer t, Integer k) {
  const auto stride = static_cast<Integer>(w.strides[d]);
  const Integer shifted =
      t + static_cast<Integer>(w.pads[d]) - k * static_cast<Integer>(w.dilations[d]);
  if (shifted < 0 || shifted % stride != 0) return -1;
  const Integer o = shifted / stride;
  return o < static_cast<Integer>(w.output[d]) ? o : -1;
}

/// The flat position of the window whose tap `k` meets the input at `t`; -1 if there is none.
template <typename Integer>
SGTC_INLINE Integer output_over_tap(const WindowShape& w, PositionOf<Integer> t,
                                    PositionOf<Integer> k) {
  const PositionOf<Integer> o = {output_coordinate(w, 0, t.d0, k.d0),
                                 output_coordinate(w, 1, t.d1, k.d1),
                                 output_coordinate(w, 2, t.d2, k.d2)};
  return (o.d0 | o.d1 | o.d2) < 0 ? -1 : flat_position(w.output, o);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
