// The cut of convolutions that have channels last inside (kernels/convolution/channels_last.h).
#pragma once

#include <optional>

#include "include/shapes.h"
#include "passes/anchor_geometry.h"

namespace sgtc {

/// The geometry of a convolution or a gradient of it, where channels last are worth it: nothing
/// where a register tile would have few channels, or where windows are too large for the kernel's
/// memory. `shape` lacks the cut alone; elements are f32 or f64, of `element_bytes`.
std::optional<AnchorGeometry> channels_last_geometry(Op op, const kernels::ConvShape& shape,
                                                     int64_t element_bytes);

}  // namespace sgtc
