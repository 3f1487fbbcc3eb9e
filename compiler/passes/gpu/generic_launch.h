// Anchors by the kernels that run on any GPU (kernels/NAME/gpu).
#pragma once

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc::gpu {

/// set_anchor_launch for the operators and types that these kernels have. False, and `spec`
/// unchanged, for all others. Throws Error for sizes that the kernels cannot count: 2^31 elements
/// of an image or indices, grids of 2^31 blocks.
bool set_generic_anchor(KernelSpec& spec, const KernelTarget& target);

/// set_anchor_launch for a matmul of bf16 or f16 with a floating-point result, by the tensor cores
/// of GPUs from sm_80 on (kernels/matmul/sm_80). False, and `spec` unchanged, where rows are not
/// multiples of 8 elements or a dimension is empty.
bool set_mma_matmul(KernelSpec& spec, const KernelTarget& target);

}  // namespace sgtc::gpu
