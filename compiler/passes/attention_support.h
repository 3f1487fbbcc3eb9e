// Which attentions a target has kernels for.
#pragma once

#include <vector>

#include "ir/ops.h"
#include "passes/kernel_target.h"

namespace sgtc {

enum class AttentionSupport {
  kNone,    // products and a softmax
  kWhole,   // one kernel
  kHalves,  // a gradient that is attention_query_grad and attention_key_grad
};

/// How `target` computes an attention or attention_grad with operands of these types.
///
/// CPUs and sm_80 have kernels for all. sm_90a has them for bfloat16 with sizes of heads that are
/// multiples of 8, at most 128, and masks of a value per key; the kernels for any GPU would do for
/// the rest, but they cannot take over the movements that a group on sm_90a may hold. Each of the
/// two operators has the same results either way, so one may be open and the other not.
AttentionSupport attention_support(Op op, const std::vector<TensorType>& operands,
                                   const KernelTarget& target);

}  // namespace sgtc
