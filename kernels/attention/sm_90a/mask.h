// Additive masks of attention: bfloat16 that is read where it is added, since it has no reuse that
// the caches do not give.
#pragma once

#include "attention/sm_90a/launch.h"
#include "hopper/instructions.h"

namespace sgtc::kernels {

/// The mask of one head, less than 2^32 elements. Places beyond its queries and keys read the last
/// one.
class HeadMask {
 public:
  SGTC_METHOD HeadMask(const AttentionSm90aShape& shape, const uint16_t* mask, uint32_t batch,
                       uint32_t head)
      : shape_(shape), own_(mask + batch * shape.mask_strides[0] + head * shape.mask_strides[1]) {}

  SGTC_METHOD float at(uint32_t query, uint32_t key) const { return widened(*place(query, key)); }
  /// Of an even key and its neighbour.
  SGTC_METHOD void pair_at(uint32_t query, uint32_t key, float (&values)[2]) const {
    if (has_pairs()) {
      const uint32_t keys = static_cast<uint32_t>(shape_.keys);
      const uint32_t pair =
          *reinterpret_cast<const uint32_t*>(place(query, key < keys ? key : keys - 2));
      values[0] = __builtin_bit_cast(float, pair << 16);
      values[1] = __builtin_bit_cast(float, pair & 0xffff0000);
    } else {
      values[0] = at(query, key);
      values[1] = at(query, key + 1);
    }
  }

 private:
  // Whether pairs are aligned to 4 bytes.
  SGTC_METHOD bool has_pairs() const {
    const int64_t* strides = shape_.mask_strides;
    return ((shape_.keys | strides[0] | strides[1] | strides[2]) & 1) == 0;
  }
  SGTC_METHOD const uint16_t* place(uint32_t query, uint32_t key) const {
    const uint32_t last_query = static_cast<uint32_t>(shape_.queries) - 1;
    const uint32_t last_key = static_cast<uint32_t>(shape_.keys) - 1;
    const auto stride = static_cast<uint32_t>(shape_.mask_strides[2]);
    return own_ +
           ((query < last_query ? query : last_query) * stride + (key < last_key ? key : last_key));
  }
  SGTC_DEVICE float widened(uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }

  const AttentionSm90aShape& shape_;
  const uint16_t* own_;
};

/// Products become scores: scores = scale * scores + mask, where the thread's rows are queries from
/// `query` on and its columns keys from `key` on.
template <int Count>
SGTC_DEVICE void add_mask_of_keys(float (&scores)[Count], const HeadMask& mask, uint32_t query,
                                  uint32_t key, float scale) {
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < Count; i += 2) {
    float values[2];
    mask.pair_at(query + i / 2 % 2 * 8, key + i / 4 * 8, values);
    scores[i] = __builtin_fmaf(scores[i], scale, values[0]);
    scores[i + 1] = __builtin_fmaf(scores[i + 1], scale, values[1]);
  }
}

}  // namespace sgtc::kernels
