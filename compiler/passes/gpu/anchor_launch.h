// Which written kernel computes an anchor on a GPU, and how it is launched.
#pragma once

#include "passes/kernel.h"
#include "passes/kernel_target.h"

namespace sgtc::gpu {

/// Sets `entry`, `launch` and `blocks` of an anchor's kernel, and appends its arguments for
/// workspace, flags and table. All else of `spec` but the symbol is set. Where kernels/ has nothing
/// for the operator and its types on the target, the entry's name stays empty.
void set_anchor_launch(KernelSpec& spec, const KernelTarget& target);

}  // namespace sgtc::gpu
