#include "passes/attention_support.h"

namespace sgtc {
namespace {

// Limits of kernels/attention/sm_90a.
constexpr int64_t kHeadStep = 8;  // elements of 16 bytes
constexpr int64_t kMostHeadSize = 128;
constexpr int64_t kMostHeads = 65535;
constexpr int64_t kMostMaskElements = int64_t{1} << 32;

bool is_head_size(int64_t size) {
  return size > 0 && size <= kMostHeadSize && size % kHeadStep == 0;
}

bool fits_hopper(const TensorType& q, const TensorType& v, const TensorType* mask) {
  const bool has_scores = element_count(q.shape) > 0 && element_count(v.shape) > 0;
  if (q.dtype != DType::kBFloat16 || !has_scores || q.shape[1] > kMostHeads) return false;
  if (!is_head_size(q.shape[3]) || !is_head_size(v.shape[3])) return false;
  if (mask == nullptr) return true;
  const int64_t keys = v.shape[2];
  return !mask->shape.empty() && mask->shape.back() == keys &&
         element_count(mask->shape) < kMostMaskElements;
}

}  // namespace

AttentionSupport attention_support(Op op, const std::vector<TensorType>& operands,
                                   const KernelTarget& target) {
  if (!target.is_hopper()) return AttentionSupport::kWhole;
  const size_t mask = op == Op::kAttention ? 3 : 7;
  const bool fits =
      fits_hopper(operands[0], operands[2], mask < operands.size() ? &operands[mask] : nullptr);
  if (!fits) return AttentionSupport::kNone;
  return op == Op::kAttention ? AttentionSupport::kWhole : AttentionSupport::kHalves;
}

}  // namespace sgtc
