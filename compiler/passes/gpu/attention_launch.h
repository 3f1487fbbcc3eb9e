// Attention on Hopper's tensor cores (kernels/attention/sm_90a).
#pragma once

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc::gpu {

/// set_anchor_launch for attention and the halves of its gradient that attention_support.h lets
/// through. Operands and results are read and written with `spec`'s layouts.
void set_hopper_attention(KernelSpec& spec, const KernelTarget& target);

}  // namespace sgtc::gpu
