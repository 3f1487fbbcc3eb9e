// The movements that an anchor's kernel takes over: it reads its operands and writes its results
// with strides.
#pragma once

#include <optional>

#include "passes/kernel.h"
#include "passes/kernel_target.h"
#include "passes/strided_view.h"

namespace sgtc {

/// Whether the kernels of `op` on `target` take any strides. Then a group may hold, beside the
/// anchor, reshapes, transposes and slices of its operands, and reshapes, transposes and places of
/// its results.
bool takes_strides(Op op, const KernelTarget& target);

/// A tensor of `type` as a kernel can take it: elements of a row are neighbours, and rows lie at
/// multiples of 16 bytes, since they are copied whole; any row-major tensor. Nothing else, and
/// nothing for no view.
std::optional<StridedView> row_view(const TensorType& type, std::optional<StridedView> view);

/// How the anchor of a group sees memory.
struct AnchorLayouts {
  std::vector<StridedView> operands;
  std::vector<StridedView> results;
};

/// Nothing where the group's other nodes are no views that a kernel can take.
std::optional<AnchorLayouts> anchor_layouts(const Graph& graph, const Group& group);

}  // namespace sgtc
