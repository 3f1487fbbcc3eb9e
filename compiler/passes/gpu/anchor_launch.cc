#include "passes/gpu/anchor_launch.h"

#include "passes/anchor_layouts.h"
#include "passes/gpu/attention_launch.h"
#include "passes/gpu/generic_launch.h"
#include "passes/gpu/matmul_launch.h"

namespace sgtc::gpu {

// The best kernel first.
void set_anchor_launch(KernelSpec& spec, const KernelTarget& target) {
  if (takes_strides(spec.anchor, target)) return set_hopper_attention(spec, target);
  if (spec.anchor == Op::kMatMul) {
    if (target.is_hopper() && set_hopper_matmul(spec, target)) return;
    if (set_mma_matmul(spec, target)) return;
  }
  set_generic_anchor(spec, target);
}

}  // namespace sgtc::gpu
