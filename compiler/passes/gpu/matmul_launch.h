// Matrix products on Hopper's tensor cores (kernels/matmul/sm_90a).
#pragma once

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc::gpu {

/// set_anchor_launch for a matmul of bfloat16 with a floating-point result. False, and `spec`
/// unchanged, where the copy engine cannot read the operands (rows of another length than a
/// multiple of 8 elements, a batch in one operand alone), or a dimension is empty or beyond the
/// limits of the table of work.
bool set_hopper_matmul(KernelSpec& spec, const KernelTarget& target);

}  // namespace sgtc::gpu
